use std::time::Duration;

use pinned_domain::{Domain, Event};

use crate::worlds::{SECOND, both};

// S1.8, H17.2
#[tokio::test(start_paused = true)]
async fn a_wait_tells_whether_the_event_is_set_at_the_end() {
    for domain in both() {
        let event = Event::new();
        assert!(
            !domain.wait(&event, Duration::ZERO).await,
            "one look, not set"
        );
        assert!(!domain.wait(&event, SECOND).await, "time runs out");

        let setter = domain.spawn({
            let (domain, event) = (domain.clone(), event.clone());
            async move {
                domain.sleep(SECOND).await;
                event.set();
            }
        });
        let start = domain.monotonic();
        assert!(domain.wait(&event, 10 * SECOND).await, "set in time");
        assert_eq!(domain.monotonic() - start, SECOND);
        assert_eq!(setter.await, Ok(()));
        assert!(domain.wait(&event, Duration::ZERO).await, "one look, set");
    }
}

// S1.8
#[tokio::test(start_paused = true)]
async fn an_event_set_and_cleared_at_once_wakes_its_waiters_and_reads_as_not_set() {
    for domain in both() {
        let event = Event::new();
        let waiter = domain.spawn({
            let (domain, event) = (domain.clone(), event.clone());
            async move {
                let start = domain.monotonic();
                (
                    domain.wait(&event, 10 * SECOND).await,
                    domain.monotonic() - start,
                )
            }
        });
        domain.sleep(SECOND).await;
        event.set();
        event.clear();
        assert_eq!(waiter.await, Ok((false, SECOND)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_between_threads() {
    let domain = Domain::real();
    for _ in 0..1_000 {
        let event = Event::new();
        let waiter = domain.spawn({
            let event = event.clone();
            async move { event.wait().await }
        });
        event.set();
        assert_eq!(domain.timeout(30 * SECOND, waiter).await, Ok(Ok(())));
    }
}
