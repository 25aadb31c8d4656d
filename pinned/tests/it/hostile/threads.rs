//! Every way to end an instance at once, on several threads.

use std::collections::HashMap;
use std::future::IntoFuture;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream;
use parking_lot::Mutex;
use pinned::{
    Context, HostOptions, Instance, PinnedWorker, Refusal, Unavailable, WebSocket, lifespan,
    pinned_api, route,
};

use pinned_testing::TestApp;

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

    #[route::get("/stream")]
    async fn stream(&self) -> Response {
        let ticks = stream::unfold((), |()| async {
            tokio::task::yield_now().await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"tick")), ()))
        });
        Response::new(Body::from_stream(ticks))
    }

    #[route::websocket("/echo")]
    async fn echo(this: Instance<Self>, socket: WebSocket) {
        loop {
            let Ok(turn) = this.write().await else { return };
            tokio::task::yield_now().await;
            drop(turn);
            if socket.send("tick").await.is_err() {
                return;
            }
        }
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
    let last = async {
        // With no idle time at all, a close may come between the activation and the turn.
        while let Err(Unavailable::Refused(refusal)) = host.write("x").await.map(drop) {
            assert_eq!(refusal, Refusal::Closing);
            tokio::task::yield_now().await;
        }
    };
    domain()
        .timeout(secs(10), last)
        .await
        .expect("serves again");
    domain()
        .timeout(secs(10), running.shutdown())
        .await
        .expect("an end")
        .expect("a clean one");
    assert!(host.is_empty());
    assert!(ledger.0.live.lock().values().all(|count| *count == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_that_leave_at_any_moment_leave_no_count() {
    // H5.4, H6.4, H11.1
    let ledger = Ledger::default();
    let builder = PinnedWorker::builder().state(ledger.clone());
    let app = TestApp::start(builder.host_with::<Busy>(HostOptions::new().namespace("/b")))
        .await
        .expect("a worker that starts");
    let host = app.host::<Busy>();
    let mut tasks = Vec::new();
    for thread in 0..8_u32 {
        let (client, host) = (app.client(), host.clone());
        tasks.push(domain().spawn(async move {
            for round in 0..300_u32 {
                let id = ["x", "y", "z"][((thread + round) % 3) as usize];
                let patience = std::time::Duration::from_micros(u64::from(round * 37 % 400));
                match (thread + round * 5) % 7 {
                    0 => host.abort(id),
                    1 => {
                        let stream = client.get(format!("/b/{id}/stream")).send();
                        if let Ok(response) = domain().timeout(patience, stream).await {
                            let mut body = response.body();
                            drop(body.try_next_chunk(patience).await);
                        }
                    }
                    2 => {
                        let opening = client.websocket(format!("/b/{id}/echo")).into_future();
                        if let Ok(Ok(mut socket)) = domain().timeout(patience, opening).await {
                            drop(domain().timeout(patience, socket.recv()).await);
                        }
                    }
                    3 => {
                        let end = client.post(format!("/b/{id}/end")).send();
                        drop(domain().timeout(patience, end).await);
                    }
                    _ => {
                        let change = client.post(format!("/b/{id}/change")).send();
                        drop(domain().timeout(patience, change).await);
                    }
                }
            }
        }));
    }
    for task in tasks {
        let ended = domain().timeout(secs(60), task).await;
        ended.expect("no deadlock").expect("no panic");
    }
    assert_eq!(*ledger.0.twice.lock(), Vec::<String>::new());
    let quiet = async {
        loop {
            let stats = app.worker().stats();
            let rows = stats["instances"].as_array().expect("rows").clone();
            if rows
                .iter()
                .all(|row| row["tasks"] == 0 && row["connections"] == 0)
            {
                return;
            }
            domain().sleep(millis(10)).await;
        }
    };
    domain().timeout(secs(20), quiet).await.expect("quiet");
    for id in ["x", "y", "z"] {
        let turn = domain().timeout(secs(10), host.write(id)).await;
        drop(turn.expect("no wedge").expect("a turn"));
    }
    domain()
        .timeout(secs(10), app.shutdown())
        .await
        .expect("an end")
        .expect("a clean one");
    assert!(ledger.0.live.lock().values().all(|count| *count == 0));
}
