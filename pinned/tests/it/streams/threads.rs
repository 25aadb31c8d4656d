//! Many threads at once.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_streams_that_end_in_every_way_leave_nothing_open() {
    // Promise 4; H6.3: each producer is cleaned up once
    let options = HostOptions::new()
        .idle_timeout(millis(20))
        .sweep_interval(millis(5));
    let app = std::sync::Arc::new(App::with::<Feed>(options).await);
    let callers: Vec<_> = (0..6_u64)
        .map(|seed| {
            let app = std::sync::Arc::clone(&app);
            domain().spawn(async move {
                let rng = pinned::domain::Domain::real_seeded(seed)
                    .rng("streams")
                    .expect("a label");
                for _ in 0..60 {
                    let mut stream = match app.try_stream("/t/a/numbers").await {
                        Ok(stream) => stream,
                        Err(refused) => {
                            assert_eq!(refused.status, 503);
                            continue;
                        }
                    };
                    for _ in 0..rng.u64() % 20 {
                        if stream.next().await.expect("no error").is_none() {
                            break;
                        }
                    }
                    if rng.u64().is_multiple_of(8) {
                        app.host::<Feed>().abort("a");
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        let done = domain().timeout(secs(60), caller).await;
        done.expect("nobody waits for ever")
            .expect("no broken stream");
    }
    let empty = domain().timeout(secs(30), app.empty::<Feed>()).await;
    empty.expect("no count was leaked");
    assert_eq!(app.probe.count("opened"), app.probe.count("closed"));
}
