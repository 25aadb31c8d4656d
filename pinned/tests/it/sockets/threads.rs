//! Many threads at once.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_sockets_that_end_in_every_way_leave_nothing_open() {
    // Promise 4
    let options = HostOptions::new()
        .idle_timeout(millis(20))
        .sweep_interval(millis(5));
    let app = std::sync::Arc::new(App::with::<Room>(options).await);
    let callers: Vec<_> = (0..6_u64)
        .map(|seed| {
            let app = std::sync::Arc::clone(&app);
            domain().spawn(async move {
                let rng = pinned::domain::Domain::real_seeded(seed)
                    .rng("sockets")
                    .expect("a label");
                for _ in 0..40 {
                    let path = match rng.u64() % 5 {
                        0 => "/t/a/push",
                        1 => "/t/a/echo?accept&denied",
                        2 => "/t/a/turns",
                        _ => "/t/a/echo",
                    };
                    let mut socket = match app.socket(path).await {
                        Ok(socket) => socket,
                        Err(refused) => {
                            assert!(matches!(refused.status, 403 | 503), "{refused:?}");
                            continue;
                        }
                    };
                    match rng.u64() % 4 {
                        0 => app.host::<Room>().abort("a"),
                        1 => socket.provoke().await,
                        2 => tokio::task::yield_now().await,
                        _ => {}
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        let done = domain().timeout(secs(60), caller).await;
        done.expect("nobody waits for ever").expect("no panic");
    }
    let empty = domain().timeout(secs(30), app.empty::<Room>()).await;
    empty.expect("no count was leaked");
}
