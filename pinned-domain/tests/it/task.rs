use std::future;
use std::sync::Arc;

use pinned_domain::TaskError;
use tokio::sync::Notify;

use crate::worlds::{SECOND, both};

// H17.2
#[tokio::test(start_paused = true)]
async fn a_task_ends_with_its_value_a_cancellation_or_a_panic() {
    for domain in both() {
        assert_eq!(domain.spawn(async { 5 }).await, Ok(5));

        let stuck = domain.spawn(future::pending::<()>());
        assert!(!stuck.is_finished());
        stuck.abort();
        let error = stuck.await.expect_err("aborted");
        assert!(error.is_cancelled());

        let broken = domain.spawn(async { panic!("no luck with {}", 13) });
        let Err(TaskError::Panicked { message, .. }) = broken.await else {
            panic!("it was to panic");
        };
        assert_eq!(message, "no luck with 13");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_on_when_its_handle_is_dropped() {
    for domain in both() {
        let done = Arc::new(Notify::new());
        drop(domain.spawn({
            let (domain, done) = (domain.clone(), Arc::clone(&done));
            async move {
                domain.sleep(SECOND).await;
                done.notify_one();
            }
        }));
        done.notified().await;
    }
}
