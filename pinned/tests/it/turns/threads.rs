//! Many threads at once.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_exclusive_stays_alone_and_nobody_waits_for_ever() {
    let options = HostOptions::new()
        .idle_timeout(millis(50))
        .sweep_interval(millis(10));
    let app = Arc::new(App::with::<Room>(options).await);
    let callers: Vec<_> = (0..8_u64)
        .map(|seed| {
            let app = Arc::clone(&app);
            domain().spawn(async move {
                let rng = pinned::domain::Domain::real_seeded(seed)
                    .rng("turns")
                    .expect("a label");
                let host = app.host::<Room>();
                for _ in 0..150 {
                    let (choice, yields) = (rng.u64() % 6, rng.u64() % 4);
                    let path = match choice {
                        0 | 1 => format!("/t/a/shared/{yields}"),
                        _ => format!("/t/a/exclusive/{yields}"),
                    };
                    match choice {
                        // Comes, and perhaps goes before it has had its turn.
                        0 | 2 => {
                            let client = app.client(&path);
                            for _ in 0..yields {
                                tokio::task::yield_now().await;
                            }
                            client.hang_up();
                        }
                        4 => {
                            let turn = host.write("a").await.expect("a turn");
                            let _visit = turn.enter(EXCLUSIVE);
                            tokio::task::yield_now().await;
                        }
                        5 => {
                            let turn = host.read("a").await.expect("a turn");
                            let _visit = turn.enter(1);
                            tokio::task::yield_now().await;
                        }
                        _ => assert_eq!(app.get(&path).await.status, 200),
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        let patience = domain().timeout(secs(60), caller).await;
        patience
            .expect("nobody waits for ever")
            .expect("nobody met anybody");
    }
    // Every count is back at zero: it is evicted as idle.
    let evicted = domain().timeout(secs(30), app.empty::<Room>()).await;
    evicted.expect("no count was leaked");
}
