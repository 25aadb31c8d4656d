//! Wind-down (H10).
//!
//! - H10.2 and H10.3, malformed deadlines: a `Duration` is never negative, infinite or not a number.
//! - H10.7, durable work: there is none before trays exist.

mod drains;
mod threads;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use parking_lot::Mutex;
use pinned::{InstanceLeaseSettings, PinnedWorker};
use tokio::task::JoinHandle;

use crate::app::{App, closed_with, pass, settle, spawn};
use crate::observe::Metrics;
use crate::scene::{Scene, actors, get, open, post, quick, seconds, seconds_left};

/// Begins a drain, which goes on in a task of its own.
pub(crate) async fn begin_drain(
    worker: &PinnedWorker,
    deadline: Option<Duration>,
) -> JoinHandle<()> {
    let worker = worker.clone();
    let drain = spawn(async move { worker.drain(deadline).await });
    settle().await;
    drain
}

/// A worker whose instance `a` works until the gate `work` opens.
async fn busy(scene: &Scene) -> (App, JoinHandle<crate::app::Reply>) {
    scene.hold("work");
    let app = App::start(scene.worker(quick())).await;
    let work = app.post("/actors/a/work").begin().await;
    (app, work)
}

/// What `on_wind_down` was told, in whole seconds from then.
type Told = Arc<Mutex<Vec<Option<u64>>>>;

fn listen(scene: &Scene) -> Told {
    let told = Told::default();
    let (hears, asks) = (Arc::clone(&told), scene.clone());
    scene.configure(move || {
        let (hears, asks) = (Arc::clone(&hears), asks.clone());
        InstanceLeaseSettings::new().on_wind_down(move |deadline: Option<SystemTime>| {
            let now = asks.context().domain().now();
            let left = deadline.map(|at| at.duration_since(now).unwrap_or_default());
            hears
                .lock()
                .push(left.map(|left| left.as_secs_f64().round() as u64));
        })
    });
    told
}

#[tokio::test(start_paused = true)]
async fn the_earliest_deadline_of_the_four_sources_counts() {
    // H10.1, H10.2, H10.3, H10.10, E17
    let scene = Scene::default();
    let told = listen(&scene);
    let (app, _work) = busy(&scene).await;
    let ctx = scene.context();
    let lease = ctx.lease();
    let actors = actors(&app);
    assert_eq!(
        (lease.winding_down(), lease.eviction_deadline()),
        (false, None)
    );

    actors.wind_down("a", Some(seconds(60)));
    lease.wind_down(Some(seconds(30)));
    assert_eq!(seconds_left(&ctx), Some(30));
    lease.wind_down(Some(seconds(90)));
    lease.wind_down(None);
    assert_eq!(seconds_left(&ctx), Some(30));
    actors.wind_down("a", Some(seconds(10)));
    assert_eq!(seconds_left(&ctx), Some(10));
    actors.wind_down("a", None);
    assert_eq!(seconds_left(&ctx), Some(30));
    let _drain = begin_drain(&app.worker, Some(Duration::from_millis(20))).await;
    assert_eq!(seconds_left(&ctx), Some(0));
    assert_eq!(
        *told.lock(),
        [Some(60), Some(30), Some(10), Some(30), Some(0)]
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_winds_its_own_instance_down_is_finished_first() {
    // H10.2, H10.7
    let scene = Scene::default();
    let gate = scene.hold("work");
    let app = App::start(scene.worker(quick())).await;
    let work = app.post("/actors/a/work").begin().await;
    scene.context().lease().wind_down(None);
    pass(60_000).await;
    app.get("/actors/a").send().await.assert_ok("here");
    gate.open();
    work.await.expect("an answer").assert_ok("worked");
    settle().await;
    assert_eq!(actors(&app).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_changed_is_not_told_again() {
    // H10.10
    let scene = Scene::default();
    let told = listen(&scene);
    let (app, _work) = busy(&scene).await;
    let ctx = scene.context();
    ctx.lease().wind_down(None);
    ctx.lease().wind_down(None);
    app.worker.server_drain(Some(None));
    app.worker.server_drain(None);
    assert_eq!(*told.lock(), [None]);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_on_wind_down_is_counted_and_ignored() {
    // H10.10
    let metrics = Metrics::capture();
    let scene = Scene::default();
    scene.configure(|| InstanceLeaseSettings::new().on_wind_down(|_| panic!("told to")));
    let (app, work) = busy(&scene).await;
    actors(&app).wind_down("a", Some(seconds(1)));
    assert_eq!(
        metrics.value("pinned_callback_failures_total{hook=on_wind_down}"),
        1.0
    );
    pass(1_010).await;
    work.await
        .expect("an answer")
        .assert_error(503, "instance aborted");
}

#[tokio::test(start_paused = true)]
async fn a_change_during_the_setup_is_seen_in_the_flag_alone() {
    // H10.11, E31, H10.7
    let scene = Scene::default();
    let (setup, work) = (scene.hold("setup"), scene.hold("work"));
    let app = App::start(scene.worker(quick())).await;
    let answer = app.post("/actors/a/work").begin().await;
    let drain = begin_drain(&app.worker, None).await;
    let ctx = scene.context();
    assert!(ctx.lease().winding_down());
    let told = Arc::new(Mutex::new(0));
    let hears = Arc::clone(&told);
    let settings = InstanceLeaseSettings::new().on_wind_down(move |_| *hears.lock() += 1);
    ctx.lease().configure(settings).expect("valid settings");
    setup.open();
    settle().await;
    assert_eq!(*told.lock(), 0);

    // Its caller is served, then it closes.
    work.open();
    answer.await.expect("an answer").assert_ok("worked");
    drain.await.expect("drained");
    assert_eq!(actors(&app).evictions(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cancels_an_activation() {
    // H10.7, H4.9
    let scene = Scene::default();
    scene.hold("setup");
    let app = App::start(scene.worker(quick())).await;
    let answer = app.get("/actors/a").begin().await;
    let drain = begin_drain(&app.worker, Some(seconds(3))).await;
    pass(2_900).await;
    assert!(!drain.is_finished());
    pass(200).await;
    answer
        .await
        .expect("an answer")
        .assert_error(503, "instance aborted");
    drain.await.expect("drained");
}

#[tokio::test(start_paused = true)]
async fn an_idle_instance_closes_at_once() {
    // H10.2, H10.7
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    for how in ["locally", "by an operator", "by a drain", "by the server"] {
        app.get("/actors/a").text().await;
        match how {
            "locally" => scene.context().lease().wind_down(None),
            "by an operator" => actors(&app).wind_down("a", Some(seconds(60))),
            "by a drain" => drop(begin_drain(&app.worker, None).await),
            _ => app.worker.server_drain(Some(None)),
        }
        settle().await;
        assert_eq!(actors(&app).len(), 0, "{how}");
        app.worker.revoke_drain();
    }
}

#[tokio::test(start_paused = true)]
async fn streams_and_sockets_do_not_hold_a_wind_down_up() {
    // H10.7, E21, H6.5, H6.8
    let scene = Scene::default();
    scene.hold("stream");
    let app = App::start(scene.worker(quick())).await;
    let mut body = open(&app, "/actors/a/stream")
        .await
        .into_body()
        .into_data_stream();
    let mut socket = app
        .get("/actors/a/socket")
        .connect()
        .await
        .expect("a socket");
    assert_eq!(
        &*body.next().await.expect("a chunk").expect("a chunk"),
        b"one"
    );
    begin_drain(&app.worker, None).await.await.expect("drained");
    assert!(body.next().await.is_none());
    assert_eq!(closed_with(&mut socket).await.0, 1012);
    assert_eq!(actors(&app).len(), 0);
    // H6.3: the cleanup of each ran, once.
    let steps = scene.steps();
    assert_eq!(steps.iter().filter(|step| *step == "stream cut").count(), 1);
    assert_eq!(steps.iter().filter(|step| *step == "socket cut").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_busy_instance_accepts_requests_until_its_work_is_done() {
    // H10.7, H10.5
    let scene = Scene::default();
    let work = scene.hold("work");
    let app = App::start(scene.worker(quick())).await;
    let answer = app.post("/actors/a/work").begin().await;
    let drain = begin_drain(&app.worker, Some(seconds(60))).await;
    app.get("/actors/a").send().await.assert_ok("here");
    let again = app.post("/actors/a/work").begin().await;
    app.get("/actors/b")
        .send()
        .await
        .assert_refused("host draining; retry");
    assert!(!drain.is_finished());
    work.open();
    answer.await.expect("an answer").assert_ok("worked");
    again.await.expect("an answer").assert_ok("worked");
    drain.await.expect("drained");
    assert!(actors(&app).is_drained());

    // H10.4: lifting the drain admits activations again.
    app.worker.revoke_drain();
    app.get("/actors/b").send().await.assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn a_task_alone_holds_a_wind_down_up_and_the_deadline_ends_it() {
    // H10.7, H10.9: the deadline needs no lease.
    let scene = Scene::default();
    scene.hold("task");
    let app = App::start(scene.worker(quick())).await;
    app.post("/actors/a/task").text().await;
    let drain = begin_drain(&app.worker, Some(seconds(3))).await;
    pass(2_900).await;
    assert!(!drain.is_finished());
    drain.await.expect("drained");
    assert_eq!(scene.steps(), ["setup", "task", "task cut", "teardown"]);
}

#[tokio::test(start_paused = true)]
async fn past_its_deadline_an_instance_refuses_even_while_it_closes() {
    // H3.8, H10.3: zero is already past.
    let scene = Scene::default();
    scene.hold("teardown");
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    actors(&app).wind_down("a", Some(Duration::ZERO));
    settle().await;
    let refused = app.get("/actors/a").send().await;
    refused.assert_refused("instance past its wind-down deadline; retry");
}

#[tokio::test(start_paused = true)]
async fn a_handle_of_an_instance_that_was_replaced_does_nothing() {
    // H10.2, E19
    let scene = Scene::default();
    let told = listen(&scene);
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    let old = scene.context();
    old.abort();
    settle().await;
    app.get("/actors/a").text().await;
    old.lease().wind_down(Some(Duration::ZERO));
    old.abort();
    pass(2_000).await;
    assert_eq!((actors(&app).len(), actors(&app).activations()), (1, 2));
    assert!(!scene.context().lease().winding_down());
    assert_eq!(*told.lock(), []);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_operator_deadline_no_longer_ends_anything() {
    // H10.3
    let scene = Scene::default();
    let (app, work) = busy(&scene).await;
    actors(&app).wind_down("a", Some(seconds(1)));
    actors(&app).wind_down("a", None);
    pass(30_000).await;
    assert!(!work.is_finished() && !scene.context().lease().winding_down());
    // Later than the one before.
    actors(&app).wind_down("a", Some(seconds(1)));
    actors(&app).wind_down("a", Some(seconds(20)));
    pass(19_900).await;
    assert!(!work.is_finished());
    pass(200).await;
    work.await
        .expect("an answer")
        .assert_error(503, "instance aborted");
    // An unknown id is no error.
    actors(&app).wind_down("nobody", Some(seconds(1)));
}

#[tokio::test(start_paused = true)]
async fn an_instance_may_wind_itself_down_in_setup_and_in_teardown() {
    // Each has one result: the caller is served and the instance closes; the close goes on.
    struct Leaves;
    #[pinned::pinned_api]
    impl Leaves {
        #[pinned::lifespan::setup]
        async fn setup(ctx: pinned::Context) -> Self {
            ctx.lease().wind_down(None);
            ctx.lease().wind_down(None);
            ctx.state::<Mutex<Option<pinned::Context>>>()
                .expect("shared")
                .lock()
                .replace(ctx);
            Self
        }

        #[pinned::lifespan::teardown]
        async fn teardown(&mut self) {}

        #[pinned::route::get("/")]
        async fn here(&self) -> &'static str {
            "here"
        }
    }
    let builder = PinnedWorker::builder()
        .state(Mutex::new(None::<pinned::Context>))
        .host_with::<Leaves>(quick().namespace("/leaves"));
    let app = App::start(builder).await;
    app.get("/leaves/a").send().await.assert_ok("here");
    settle().await;
    let leaves = app.worker.hosted::<Leaves>().expect("hosted");
    assert_eq!(
        (leaves.activations(), leaves.evictions(), leaves.len()),
        (1, 1, 0)
    );

    let scene = Scene::default();
    let teardown = scene.hold("teardown");
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").text().await;
    scene.context().abort();
    settle().await;
    scene.context().lease().wind_down(None);
    scene.context().lease().wind_down(Some(Duration::ZERO));
    teardown.open();
    settle().await;
    let releases = scene
        .steps()
        .iter()
        .filter(|step| step.starts_with("release "))
        .count();
    assert_eq!((releases, actors(&app).len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_a_wake_activated_for_nothing_closes_at_the_next_sweep() {
    // H10.7
    let scene = Scene::default();
    let setup = scene.hold("setup");
    let app = App::start(scene.placed_worker(quick())).await;
    assert_eq!(post(&app, "/actors/a/_wake").send().await.status, 202);
    let drain = begin_drain(&app.worker, None).await;
    setup.open();
    settle().await;
    assert_eq!(actors(&app).len(), 1);
    pass(1_010).await;
    assert_eq!(actors(&app).len(), 0);
    drain.await.expect("drained");
}
