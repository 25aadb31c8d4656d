//! `drain`, `revoke_drain`, and what they do to the lease.

use std::time::Duration;

use crate::app::{App, pass, settle};
use crate::scene::{Actor, Scene, actors, quick, seconds};
use crate::wind_down::begin_drain;

/// Whole seconds until the worker's lease ends.
fn lease_left(app: &App) -> u64 {
    let end = app
        .worker
        .lease()
        .expires_at_monotonic()
        .expect("acknowledged");
    end.duration_since(app.worker.domain().monotonic())
        .as_secs()
}

#[tokio::test(start_paused = true)]
async fn the_drain_caps_later_renewals_of_the_lease() {
    // H10.6, W7.8
    let scene = Scene::default();
    scene.hold("work");
    let app = App::start(scene.worker(quick())).await;
    let _work = app.post("/actors/a/work").begin().await;
    let lease = app.worker.lease();
    lease.renewed(seconds(60), None);
    let _drain = begin_drain(&app.worker, Some(Duration::from_millis(20_001))).await;
    // What was granted is not taken back.
    assert!(lease_left(&app) > 58);
    lease.renewed(seconds(60), None);
    assert_eq!(lease_left(&app), 20);
    // The earliest of the two drains counts.
    app.worker.server_drain(Some(Some(seconds(10))));
    lease.renewed(seconds(60), None);
    assert_eq!(lease_left(&app), 10);
    app.worker.server_drain(None);
    lease.renewed(seconds(60), None);
    assert_eq!(lease_left(&app), 20);
    app.worker.revoke_drain();
    lease.renewed(seconds(60), None);
    assert_eq!(lease_left(&app), 60);
    // A drain without a deadline caps nothing.
    let _drain = begin_drain(&app.worker, None).await;
    lease.renewed(seconds(60), None);
    assert_eq!(lease_left(&app), 60);
}

#[tokio::test(start_paused = true)]
async fn with_several_hosts_the_earliest_deadline_caps_the_lease() {
    // W7.8, W1.3
    let scene = Scene::default();
    let builder = scene
        .worker(quick())
        .host_with::<Actor>(quick().namespace("/others"));
    let app = App::start(builder).await;
    let _drain = begin_drain(&app.worker, Some(Duration::from_millis(9_001))).await;
    app.worker.lease().renewed(seconds(60), None);
    assert_eq!(lease_left(&app), 9);
}

#[tokio::test(start_paused = true)]
async fn a_worker_drain_covers_all_its_hosts_and_is_revoked_on_all() {
    // H10.5, W13.1, W1.6
    let scene = Scene::default();
    let builder = scene
        .worker(quick())
        .host_with::<Actor>(quick().namespace("/others"));
    let app = App::start(builder).await;
    app.get("/actors/a").text().await;
    app.get("/others/a").text().await;
    assert!(!app.worker.is_draining() && !app.worker.is_drained());
    begin_drain(&app.worker, Some(seconds(30)))
        .await
        .await
        .expect("drained");
    assert!(app.worker.is_draining() && app.worker.is_drained());
    // W1.6: a worker that drains is ready still; it is the lease that decides.
    assert!(app.worker.is_ready());
    for path in ["/actors/b", "/others/b"] {
        app.get(path)
            .send()
            .await
            .assert_refused("host draining; retry");
    }
    app.worker.revoke_drain();
    assert!(!app.worker.is_draining() && !app.worker.is_drained());
    for path in ["/actors/b", "/others/b"] {
        app.get(path).send().await.assert_ok("here");
    }
}

#[tokio::test(start_paused = true)]
async fn stragglers_are_aborted_at_the_deadline_and_persist_before_the_release() {
    // W13.4, W13.1
    let scene = Scene::default();
    scene.hold("work");
    let app = App::start(scene.placed_worker(quick())).await;
    let work = crate::scene::post(&app, "/actors/a/work").begin().await;
    let drain = begin_drain(&app.worker, Some(seconds(3))).await;
    pass(3_010).await;
    work.await
        .expect("an answer")
        .assert_error(503, "instance aborted");
    drain.await.expect("drained");
    assert_eq!(
        scene.steps(),
        [
            "open a",
            "setup",
            "work",
            "work cut",
            "teardown",
            "flush",
            "release /actors/a none",
            "released",
            "dispose",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_later_drain_call_re_arms_the_deadline() {
    // W13.3's rule for calls; a second signal ends the process instead.
    let scene = Scene::default();
    scene.hold("work");
    let app = App::start(scene.worker(quick())).await;
    let work = app.post("/actors/a/work").begin().await;
    let _first = begin_drain(&app.worker, Some(seconds(3))).await;
    pass(2_000).await;
    let _second = begin_drain(&app.worker, Some(seconds(3))).await;
    pass(2_500).await;
    assert!(!work.is_finished());
    pass(600).await;
    work.await
        .expect("an answer")
        .assert_error(503, "instance aborted");
    assert!(actors(&app).is_drained());
}

#[tokio::test(start_paused = true)]
async fn after_drained_no_task_of_any_instance_is_alive() {
    let scene = Scene::default();
    for place in ["work", "task", "stream"] {
        scene.hold(place);
    }
    let app = App::start(scene.worker(quick())).await;
    let work = app.post("/actors/a/work").begin().await;
    app.post("/actors/b/task").text().await;
    let body = crate::scene::open(&app, "/actors/c/stream")
        .await
        .into_body();
    let mut socket = app
        .get("/actors/d/socket")
        .connect()
        .await
        .expect("a socket");
    settle().await;
    app.worker.drain(Some(Duration::ZERO)).await;
    let steps = scene.steps();
    for what in ["work cut", "task cut", "stream cut", "socket cut"] {
        assert!(steps.iter().any(|step| step == what), "{what}: {steps:?}");
    }
    assert_eq!(crate::app::closed_with(&mut socket).await.0, 1012);
    work.await
        .expect("an answer")
        .assert_error(503, "instance aborted");
    drop(body);
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_is_not_ready() {
    // W1.6
    let app = App::start(Scene::default().worker(quick())).await;
    app.worker.lease().renewed(seconds(9), None);
    assert!(app.worker.is_ready());
    pass(9_000).await;
    assert!(!app.worker.is_ready());
    app.worker.lease().renewed(seconds(9), None);
    assert!(app.worker.is_ready());
}
