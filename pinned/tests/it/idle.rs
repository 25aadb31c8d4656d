//! Idle eviction and `on_idle` (H8).
//!
//! - H8.1: nothing outside the product can make a sweep itself fail; a panicking `on_idle` is H8.5.
//! - H8.2, durable work: there is none before trays exist.
//! - H8.9: the purge of fences shows in nothing but memory; that they are forgotten is H12.7.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use pinned::InstanceLeaseSettings;

use crate::app::{App, pass, settle};
use crate::observe::Metrics;
use crate::scene::{Scene, actors, get, open, post, quick, seconds, stay};

/// A worker whose instances have an `on_idle` that counts its calls.
async fn kept_by_a_callback(scene: &Scene) -> (App, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&calls);
    scene.configure(move || {
        let told = Arc::clone(&told);
        InstanceLeaseSettings::new().on_idle(move || {
            told.fetch_add(1, Ordering::Relaxed);
        })
    });
    (App::start(scene.worker(quick())).await, calls)
}

#[tokio::test(start_paused = true)]
async fn an_instance_without_work_is_evicted_within_a_sweep_of_its_idle_timeout() {
    // H8.2, H8.8
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    pass(500).await;
    app.get("/actors/a").send().await.assert_ok("here");
    pass(9_990).await;
    assert_eq!(actors(&app).len(), 1);
    // H8.1: late by a sweep interval at the most.
    pass(1_010).await;
    assert_eq!((actors(&app).len(), actors(&app).evictions()), (0, 1));
    app.get("/actors/a").send().await.assert_ok("here");
    assert_eq!(scene.steps(), ["setup", "teardown", "setup"]);
}

#[tokio::test(start_paused = true)]
async fn each_request_starts_the_idle_time_anew() {
    // H8.2, H5.6
    let app = App::start(Scene::default().worker(quick())).await;
    for _ in 0..5 {
        app.get("/actors/a").send().await.assert_ok("here");
        pass(9_000).await;
    }
    assert_eq!(
        (actors(&app).activations(), actors(&app).evictions()),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn the_end_of_work_evicts_at_once_what_has_no_idle_time() {
    // H8.1, H5.7
    let app = App::start(Scene::default().worker(quick().idle_timeout(seconds(0)))).await;
    app.get("/actors/a").send().await.assert_ok("here");
    settle().await;
    assert_eq!((actors(&app).len(), actors(&app).evictions()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn handlers_tasks_streams_and_sockets_keep_an_instance() {
    // H8.2, H6.2, H6.5, H7.1
    let scene = Scene::default();
    let (work, task, stream) = (scene.hold("work"), scene.hold("task"), scene.hold("stream"));
    let app = App::start(scene.worker(quick())).await;
    let handler = app.post("/actors/handler/work").begin().await;
    app.post("/actors/task/task").text().await;
    let mut body = open(&app, "/actors/stream/stream")
        .await
        .into_body()
        .into_data_stream();
    let socket = app.get("/actors/socket/socket").connect().await;
    let socket = stay(socket.expect("a socket"));
    pass(60_000).await;
    assert_eq!((actors(&app).len(), actors(&app).evictions()), (4, 0));

    // E33, H5.8: none is evicted in the moment in which its long work ends.
    work.open();
    task.open();
    stream.open();
    socket.abort();
    while body.next().await.is_some() {}
    handler.await.expect("an answer").assert_ok("worked");
    pass(9_000).await;
    assert_eq!((actors(&app).len(), actors(&app).evictions()), (4, 0));
    pass(2_010).await;
    assert_eq!((actors(&app).len(), actors(&app).evictions()), (0, 4));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_activates_is_not_swept() {
    // H8.2
    let scene = Scene::default();
    let setup = scene.hold("setup");
    let app = App::start(scene.worker(quick())).await;
    let first = app.get("/actors/a").begin().await;
    pass(60_000).await;
    setup.open();
    first.await.expect("an answer").assert_ok("here");
    pass(9_000).await;
    assert_eq!(actors(&app).evictions(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cold_instance_that_its_authorizer_holds_is_swept_like_any_other() {
    // H8.4
    let scene = Scene::default();
    let authorizer = scene.hold("authorize");
    let app = App::start(scene.worker(quick())).await;
    let first = app.get("/actors/a").begin().await;
    pass(11_010).await;
    assert_eq!((actors(&app).len(), actors(&app).evictions()), (0, 1));
    authorizer.open();
    first
        .await
        .expect("an answer")
        .assert_refused("instance closing; retry");
    assert_eq!(scene.steps(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn winding_down_evicts_whatever_the_idle_time() {
    // H8.3
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    scene.context().lease().wind_down(None);
    settle().await;
    assert_eq!(actors(&app).evictions(), 1);
}

#[tokio::test(start_paused = true)]
async fn on_idle_is_told_once_and_the_instance_stays() {
    // H8.5, E22
    let scene = Scene::default();
    let (app, calls) = kept_by_a_callback(&scene).await;
    app.get("/actors/a").text().await;
    pass(120_000).await;
    assert_eq!((calls.load(Ordering::Relaxed), actors(&app).len()), (1, 1));

    // New work begins a new idle spell.
    app.get("/actors/a").text().await;
    pass(9_000).await;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    pass(120_000).await;
    assert_eq!(
        (calls.load(Ordering::Relaxed), actors(&app).activations()),
        (2, 1)
    );

    // So does a task of its own.
    app.post("/actors/a/task").text().await;
    pass(120_000).await;
    assert_eq!(calls.load(Ordering::Relaxed), 3);

    // H8.6
    actors(&app).wind_down("a", Some(seconds(30)));
    settle().await;
    assert_eq!((calls.load(Ordering::Relaxed), actors(&app).len()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_panicking_on_idle_leads_to_the_default_close() {
    // H8.5
    let metrics = Metrics::capture();
    let scene = Scene::default();
    scene.configure(|| InstanceLeaseSettings::new().on_idle(|| panic!("told to")));
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").text().await;
    scene.steps();
    pass(11_010).await;
    assert_eq!(
        scene.steps(),
        [
            "teardown",
            "flush",
            "release /actors/a none",
            "released",
            "dispose"
        ]
    );
    assert_eq!(
        metrics.value("pinned_callback_failures_total{hook=on_idle}"),
        1.0
    );
    // H8.7: a plain close, no abort.
    assert_eq!(metrics.value("pinned_instance_aborts_total"), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_callback_dropped_with_its_instance_may_ask_it_something() {
    // No lock of the host is held while user code runs, destructors included.
    struct AsksAtTheEnd(Scene);
    impl Drop for AsksAtTheEnd {
        fn drop(&mut self) {
            let winding_down = self.0.context().lease().winding_down();
            self.0.note(format!("winding down: {winding_down}"));
        }
    }
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    for _ in 0..2 {
        let asks = AsksAtTheEnd(scene.clone());
        let settings = InstanceLeaseSettings::new().on_idle(move || asks.0.note("idle"));
        scene
            .context()
            .lease()
            .configure(settings)
            .expect("valid settings");
    }
    assert_eq!(scene.steps(), ["setup", "winding down: false"]);
    scene.context().abort();
    settle().await;
    assert_eq!(scene.steps(), ["teardown", "winding down: false"]);
    assert_eq!(actors(&app).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_close_hands_the_placement_back() {
    // H8.7
    let scene = Scene::default();
    let app = App::start(scene.placed_worker(quick())).await;
    post(&app, "/actors/a/task").epoch(7).text().await;
    pass(11_010).await;
    assert_eq!(
        scene.steps(),
        [
            "open a",
            "setup",
            "task",
            "task done",
            "teardown",
            "flush",
            "release /actors/a 7",
            "released",
            "dispose",
        ]
    );
}
