//! Every way to end an instance at once, on several threads.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use pinned::{Context, HostOptions, Instance, PinnedWorker, lifespan, pinned_api, route};

use crate::rig::{domain, millis, secs};

/// Which ids are live, and where two were.
#[derive(Clone, Default)]
struct Ledger(Arc<Books>);

#[derive(Default)]
struct Books {
    live: Mutex<HashMap<String, u32>>,
    twice: Mutex<Vec<String>>,
}

impl Ledger {
    fn enter(&self, id: &str) {
        let mut live = self.0.live.lock();
        let count = live.entry(id.to_owned()).or_default();
        *count += 1;
        if *count > 1 {
            self.0.twice.lock().push(id.to_owned());
        }
    }

    fn leave(&self, id: &str) {
        *self.0.live.lock().entry(id.to_owned()).or_default() -= 1;
    }
}

struct Busy {
    ctx: Context,
    ledger: Ledger,
    odd: bool,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ledger.leave(self.ctx.id());
    }
}

#[pinned_api]
impl Busy {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let ledger = (*ctx.state::<Ledger>().expect("a ledger")).clone();
        tokio::task::yield_now().await;
        ledger.enter(ctx.id());
        Self {
            ctx,
            ledger,
            odd: false,
        }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        tokio::task::yield_now().await;
        assert!(!self.odd, "torn down in the middle of a change");
    }

    #[route::post("/change")]
    async fn change(&mut self) -> String {
        assert!(!self.odd, "torn");
        self.odd = true;
        tokio::task::yield_now().await;
        self.odd = false;
        String::new()
    }

    #[route::post("/end")]
    async fn end(this: Instance<Self>) -> String {
        let ctx = this.context();
        ctx.spawn(async { tokio::task::yield_now().await });
        if let Ok(turn) = this.read().await {
            tokio::task::yield_now().await;
            drop(turn);
        }
        ctx.abort();
        String::new()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn storms_of_endings_leave_one_instance_per_id_and_no_count() {
    // H4.11, H10.4, H11.1
    let ledger = Ledger::default();
    let worker = PinnedWorker::builder()
        .state(ledger.clone())
        .host_with::<Busy>(
            HostOptions::new()
                .namespace("/b")
                .max_concurrent_activations(4)
                .idle_timeout(std::time::Duration::ZERO)
                .sweep_interval(millis(1)),
        )
        .build()
        .expect("built");
    let running = worker.run_lifespan().await.expect("running");
    let host = worker.hosted::<Busy>().expect("hosted");
    let mut tasks = Vec::new();
    for thread in 0..8_u32 {
        let (host, worker) = (host.clone(), worker.clone());
        tasks.push(domain().spawn(async move {
            for round in 0..400_u32 {
                let id = ["x", "y", "z"][((thread + round) % 3) as usize];
                match (thread + round * 7) % 9 {
                    0 => host.abort(id),
                    1 => host.wind_down(id, Some(millis(1))),
                    2 => host.wind_down(id, None),
                    3 if round % 16 == 0 => worker.server_drain(Some(Some(millis(1)))),
                    4 => worker.server_drain(None),
                    5 => drop(domain().timeout(millis(1), host.write(id)).await),
                    6 => {
                        if let Ok(instance) = host.instance(id).await {
                            instance.context().abort();
                            drop(domain().timeout(millis(1), instance.write()).await);
                        }
                    }
                    _ => {
                        if let Ok(mut turn) = host.write(id).await {
                            turn.change().await;
                        }
                        if let Ok(turn) = host.read(id).await {
                            // A guard that is dropped where there is no runtime.
                            let ended = std::thread::spawn(move || drop(turn));
                            tokio::task::yield_now().await;
                            ended.join().expect("dropped");
                        }
                    }
                }
            }
            worker.server_drain(None);
        }));
    }
    for task in tasks {
        domain()
            .timeout(secs(60), task)
            .await
            .expect("no deadlock")
            .expect("no panic");
    }
    assert_eq!(*ledger.0.twice.lock(), Vec::<String>::new());
    worker.server_drain(None);
    let last = domain().timeout(secs(10), host.write("x")).await;
    drop(last.expect("no wedge").expect("serves again"));
    domain()
        .timeout(secs(10), running.shutdown())
        .await
        .expect("an end")
        .expect("a clean one");
    assert!(host.is_empty());
    assert!(ledger.0.live.lock().values().all(|count| *count == 0));
}
