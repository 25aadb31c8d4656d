//! Admission to the directory (H3).
//!
//! No user code runs in a construction, so it cannot fail (H3.7); phase `construct` counts H3.1 alone.

mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use pinned::{
    Context, HostOptions, Instance, PinnedHost, PinnedWorker, WebSocket, WorkerBuilder, lifespan,
    pinned_api, route,
};
use pinned_testing::MetricsProbe;

use crate::app::{App, Board, Call, Gate, frame, pass, settle, spawn};

/// Where the rooms of a test wait, by what their ids begin with, and how many of them live.
struct House {
    setup: Gate,
    teardown: Gate,
    work: Gate,
    live: AtomicUsize,
    most: AtomicUsize,
}

struct Room {
    ctx: Context,
    house: Arc<House>,
}

#[pinned_api]
impl Room {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let house: Arc<House> = Arc::clone(&*ctx.state::<Arc<House>>().unwrap());
        if ctx.id().starts_with("slow-setup") {
            house.setup.pass().await;
        }
        let live = house.live.fetch_add(1, Ordering::SeqCst) + 1;
        house.most.fetch_max(live, Ordering::SeqCst);
        Self { ctx, house }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        if self.ctx.id().starts_with("slow-teardown") {
            self.house.teardown.pass().await;
        }
        self.house.live.fetch_sub(1, Ordering::SeqCst);
    }

    #[route::get("/")]
    async fn name(&self) -> String {
        self.ctx.id().to_owned()
    }

    #[route::get("/work")]
    async fn work(&self) -> &'static str {
        self.house.work.pass().await;
        "done"
    }

    #[route::post("/abort")]
    async fn abort(&self) -> &'static str {
        self.ctx.abort();
        "aborting"
    }

    #[route::websocket("/chat")]
    async fn chat(this: Instance<Self>, socket: WebSocket) {
        let _ = socket.send_text(this.id()).await;
    }
}

struct Scene {
    app: App,
    host: PinnedHost<Room>,
    house: Arc<House>,
    board: Board,
}

fn rooms(options: HostOptions) -> (WorkerBuilder, Arc<House>) {
    let house = Arc::new(House {
        setup: Gate::closed(),
        teardown: Gate::closed(),
        work: Gate::closed(),
        live: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    });
    let builder = PinnedWorker::builder()
        .host_with::<Room>(options.namespace("/rooms"))
        .state(Arc::clone(&house));
    (builder, house)
}

async fn local(options: HostOptions) -> Scene {
    let (builder, house) = rooms(options);
    scene(builder, house, Board::default()).await
}

async fn placed(options: HostOptions) -> Scene {
    let (builder, house) = rooms(options);
    let board = Board::default();
    scene(builder.placements(Arc::new(board.clone())), house, board).await
}

async fn scene(builder: WorkerBuilder, house: Arc<House>, board: Board) -> Scene {
    let app = App::start(builder).await;
    let host = app.worker.hosted().expect("mounted");
    Scene {
        app,
        host,
        house,
        board,
    }
}

impl Scene {
    fn get(&self, path: &str) -> Call {
        self.app.get(path).attested()
    }

    async fn live(&self, id: &str) {
        self.get(&format!("/rooms/{id}")).send().await.assert_ok(id);
    }

    /// The same refusal on HTTP and instead of an upgrade (H3.12).
    async fn assert_refused(&self, id: &str, detail: &str) {
        self.get(&format!("/rooms/{id}"))
            .send()
            .await
            .assert_refused(detail);
        let socket = self.get(&format!("/rooms/{id}/chat"));
        socket.refused_socket().await.assert_refused(detail);
    }
}

const EXPIRED: &str = "lease expired; not serving";
const UNHEALTHY: &str = "lease unhealthy; refusing new activations";
const DRAINING: &str = "host draining; retry";
const CAPACITY: &str = "instance capacity reached; retry";
const PAST: &str = "instance past its wind-down deadline; retry";
const CLOSING: &str = "instance closing; retry";
const QUEUE: &str = "activation queue full; retry";

#[tokio::test(start_paused = true)]
async fn nothing_is_served_before_the_start() {
    let (builder, _house) = rooms(HostOptions::new());
    let worker = builder.build().unwrap();
    let request = http::Request::get("/rooms/a")
        .body(axum::body::Body::empty())
        .unwrap();
    let response = tower::ServiceExt::oneshot(worker.into_router(), request)
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["pinned-refusal"], "not-serving");
}

#[tokio::test(start_paused = true)]
async fn after_the_shutdown_every_request_is_a_fault() {
    // H3.1
    let metrics = MetricsProbe::new();
    let _watching = metrics.watch();
    let scene = local(HostOptions::new()).await;
    scene.live("a").await;
    scene.app.shutdown().await;
    for id in ["a", "b"] {
        let reply = scene.get(&format!("/rooms/{id}")).send().await;
        assert_eq!(
            (reply.status.as_u16(), &*reply.body),
            (500, "Internal Server Error")
        );
        let reply = scene
            .get(&format!("/rooms/{id}/chat"))
            .refused_socket()
            .await;
        assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
    }
    for transport in ["http", "websocket"] {
        let labels = [("phase", "construct"), ("transport", transport)];
        assert_eq!(metrics.counter("pinned_request_failures_total", &labels), 2);
    }
    assert_eq!(scene.house.live.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_serves_nobody_and_ends_nobody() {
    // H3.2
    let scene = placed(HostOptions::new()).await;
    let lease = scene.app.worker.lease().clone();
    lease.renewed(Duration::from_secs(15), None);
    scene.live("resident").await;
    pass(15_000).await;
    scene.assert_refused("resident", EXPIRED).await;
    scene.assert_refused("new", EXPIRED).await;
    assert_eq!((scene.host.len(), scene.host.evictions()), (1, 0));
    lease.renewed(Duration::from_secs(15), None);
    scene.live("resident").await;
    assert_eq!(scene.host.activations(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_lease_serves_residents_alone() {
    // H3.4, H3.5, E29
    let scene = placed(HostOptions::new()).await;
    let lease = scene.app.worker.lease().clone();
    lease.renewed(Duration::from_secs(15), None);
    scene.live("resident").await;
    pass(10_000).await;
    scene.assert_refused("new", UNHEALTHY).await;
    let reply = scene.get("/rooms/new").send().await;
    assert_eq!(reply.header("pinned-refusal"), Some("lease-unhealthy"));
    scene.live("resident").await;
    let mut socket = scene
        .get("/rooms/resident/chat")
        .connect()
        .await
        .expect("accepted");
    assert_eq!(frame(&mut socket).await, "resident");
    assert_eq!(scene.host.len(), 1);
    lease.renewed(Duration::from_secs(15), None);
    scene.live("new").await;
}

#[tokio::test(start_paused = true)]
async fn new_ids_are_refused_in_the_order_lease_drain_capacity() {
    // H3.4, H3.5
    let scene = placed(HostOptions::new().max_instances(1)).await;
    let lease = scene.app.worker.lease().clone();
    scene.live("resident").await;
    let work = scene.get("/rooms/resident/work").begin().await;
    scene.assert_refused("new", CAPACITY).await;
    scene.app.worker.server_drain(Some(None));
    scene.assert_refused("new", DRAINING).await;
    lease.renewed(Duration::from_secs(15), None);
    pass(10_000).await;
    scene.assert_refused("new", UNHEALTHY).await;
    // Whoever is here is served all along.
    scene.live("resident").await;
    scene.house.work.open();
    work.await.unwrap().assert_ok("done");
}

#[tokio::test(start_paused = true)]
async fn every_record_takes_up_capacity_in_whatever_state() {
    // H3.6
    let scene = placed(HostOptions::new().max_instances(2)).await;
    let activating = scene.get("/rooms/slow-setup").begin().await;
    scene.live("slow-teardown").await;
    assert_eq!(scene.host.len(), 2);
    scene.assert_refused("new", CAPACITY).await;
    scene.host.abort("slow-teardown");
    scene.house.teardown.reached(1).await;
    scene.assert_refused("new", CAPACITY).await;
    scene.house.teardown.open();
    settle().await;
    scene.live("new").await;
    scene.house.setup.open();
    activating.await.unwrap().assert_ok("slow-setup");
    assert_eq!(scene.host.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn concurrent_first_requests_share_one_construction() {
    // H3.7, E24
    let scene = local(HostOptions::new()).await;
    let mut calls = Vec::new();
    for _ in 0..10 {
        calls.push(scene.get("/rooms/slow-setup").begin().await);
    }
    assert_eq!(scene.host.len(), 1);
    scene.house.setup.open();
    for call in calls {
        call.await.unwrap().assert_ok("slow-setup");
    }
    assert_eq!(
        (
            scene.host.activations(),
            scene.house.most.load(Ordering::SeqCst)
        ),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn past_its_deadline_an_instance_refuses_even_while_it_closes() {
    // H3.8
    let scene = placed(HostOptions::new()).await;
    scene.live("slow-teardown").await;
    scene.host.wind_down("slow-teardown", Some(Duration::ZERO));
    scene.house.teardown.reached(1).await;
    scene.assert_refused("slow-teardown", PAST).await;
    scene.house.teardown.open();
    settle().await;
    scene.live("slow-teardown").await;
}

#[tokio::test(start_paused = true)]
async fn without_a_control_plane_a_request_waits_for_the_close() {
    // H3.9
    let scene = local(HostOptions::new()).await;
    scene.live("slow-teardown").await;
    scene.host.abort("slow-teardown");
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(scene.get("/rooms/slow-teardown").begin().await);
    }
    assert_eq!((scene.host.len(), scene.host.activations()), (1, 1));
    scene.house.teardown.open();
    for call in calls {
        call.await.unwrap().assert_ok("slow-teardown");
    }
    // H4.11
    assert_eq!(
        (
            scene.host.activations(),
            scene.house.most.load(Ordering::SeqCst)
        ),
        (2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_for_a_close_starts_over() {
    // H3.9: what was no bar when it came may be one by now.
    let scene = local(HostOptions::new()).await;
    scene.live("slow-teardown").await;
    scene.host.abort("slow-teardown");
    let call = scene.get("/rooms/slow-teardown").begin().await;
    scene.app.worker.server_drain(Some(None));
    scene.house.teardown.open();
    call.await.unwrap().assert_refused(DRAINING);
}

#[tokio::test(start_paused = true)]
async fn with_a_control_plane_a_closing_instance_refuses_at_once() {
    // H3.9, H3.10, E8, E9
    let scene = placed(HostOptions::new()).await;
    scene.live("a").await;
    let acknowledged = Gate::closed();
    scene.board.hold(&acknowledged);
    scene.host.abort("a");
    // In the same tick: no step of the teardown has run.
    scene.assert_refused("a", CLOSING).await;
    acknowledged.reached(1).await;
    scene.assert_refused("a", CLOSING).await;
    assert_eq!(scene.host.activations(), 1);
    acknowledged.open();
    settle().await;
    scene.live("a").await;
    assert_eq!(scene.host.activations(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_aborts_itself_is_closing_from_then_on() {
    // H3.10
    let scene = placed(HostOptions::new()).await;
    scene
        .app
        .post("/rooms/slow-teardown/abort")
        .attested()
        .send()
        .await
        .assert_ok("aborting");
    scene.assert_refused("slow-teardown", CLOSING).await;
}

fn kept() -> HostOptions {
    HostOptions::new()
        .idle_timeout(Duration::from_secs(10))
        .sweep_interval(Duration::from_secs(1))
        .release_placement_on_idle(false)
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_close_that_keeps_the_placement() {
    // H3.9, E10
    let scene = placed(kept()).await;
    scene.live("slow-teardown").await;
    scene.house.teardown.reached(1).await;
    let call = scene.get("/rooms/slow-teardown").begin().await;
    scene.house.teardown.open();
    call.await.unwrap().assert_ok("slow-teardown");
    assert_eq!((scene.host.activations(), scene.host.evictions()), (2, 1));
    assert!(scene.board.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kept_close_that_becomes_a_releasing_one_refuses_who_waits() {
    // H3.9
    let scene = placed(kept()).await;
    scene.live("slow-teardown").await;
    scene.house.teardown.reached(1).await;
    let call = scene.get("/rooms/slow-teardown").begin().await;
    scene.host.abort("slow-teardown");
    call.await.unwrap().assert_refused(CLOSING);
    scene.house.teardown.open();
    settle().await;
    assert_eq!(scene.board.released().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_activation_that_does_not_start_in_time_is_refused() {
    // H3.12, H3.13
    let scene = local(HostOptions::new().max_concurrent_activations(1)).await;
    let _activating = scene.get("/rooms/slow-setup").begin().await;
    scene.assert_refused("b", QUEUE).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_cut_off_makes_no_promise() {
    // H3.13: it may have run, so nothing says that it may be repeated.
    let scene = placed(HostOptions::new()).await;
    let work = scene.get("/rooms/a/work").begin().await;
    scene.host.abort("a");
    let reply = work.await.unwrap();
    reply.assert_error(503, "instance aborted");
    assert_eq!(reply.header("retry-after"), None);
    assert_eq!(reply.header("pinned-refusal"), None);
}
