//! The detached timeout (H9).
//!
//! - H9.4, durable state: none before trays exist; the reactivation is shown here.

use std::time::Duration;

use pinned::{HostOptions, InstanceLeaseSettings};

use crate::app::{App, pass, settle};
use crate::scene::{Scene, actors, open, quick, seconds, stay};

/// Detached after 20 s; never idle.
fn options() -> HostOptions {
    quick()
        .idle_timeout(seconds(3_600))
        .detached_timeout(seconds(20))
}

#[test]
fn the_window_is_longer_than_zero() {
    // H9.1
    let error = Scene::default()
        .worker(quick().detached_timeout(Duration::ZERO))
        .build();
    assert!(error.unwrap_err().to_string().contains("detached_timeout"));
}

#[tokio::test(start_paused = true)]
async fn requests_and_tasks_do_not_restart_the_clock() {
    // H9.2
    let scene = Scene::default();
    let app = App::start(scene.worker(options())).await;
    for _ in 0..4 {
        app.get("/actors/a").send().await.assert_ok("here");
        app.post("/actors/a/task").send().await;
        pass(4_999).await;
    }
    assert_eq!(actors(&app).evictions(), 0);
    // H9.3: within a sweep.
    pass(1_010).await;
    assert_eq!((actors(&app).evictions(), actors(&app).len()), (1, 0));
    // H9.4
    app.get("/actors/a").send().await.assert_ok("here");
    assert_eq!(actors(&app).activations(), 2);
}

#[tokio::test(start_paused = true)]
async fn running_work_is_cut_off_with_no_grace() {
    // H9.3
    let scene = Scene::default();
    scene.hold("work");
    let app = App::start(scene.worker(options())).await;
    let work = app.post("/actors/a/work").begin().await;
    pass(21_010).await;
    let answer = work.await.expect("an answer");
    answer.assert_error(503, "instance aborted");
    assert_eq!(scene.steps(), ["setup", "work", "work cut", "teardown"]);
}

#[tokio::test(start_paused = true)]
async fn recurring_tasks_and_on_idle_do_not_keep_a_detached_instance() {
    // E23, H9.3
    let scene = Scene::default();
    scene.configure(|| InstanceLeaseSettings::new().on_idle(|| {}));
    let app = App::start(scene.worker(options().idle_timeout(seconds(2)))).await;
    for _ in 0..3 {
        app.post("/actors/a/task").send().await;
        pass(6_000).await;
    }
    assert_eq!(actors(&app).evictions(), 0);
    pass(3_010).await;
    assert_eq!(actors(&app).evictions(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_held_stream_and_a_held_socket_keep_it_for_twice_the_window() {
    // E23, H9.2
    let scene = Scene::default();
    scene.hold("stream");
    let app = App::start(scene.worker(options())).await;
    let body = open(&app, "/actors/a/stream").await.into_body();
    let socket = app.get("/actors/b/socket").connect().await;
    let socket = stay(socket.expect("a socket"));
    pass(40_000).await;
    assert_eq!(actors(&app).evictions(), 0);

    // The clock starts again when the last of it ends.
    drop(body);
    socket.abort();
    pass(19_900).await;
    assert_eq!(actors(&app).evictions(), 0);
    pass(1_200).await;
    assert_eq!(actors(&app).evictions(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_operator_deadline_that_is_set_already_is_left_as_it_is() {
    // H9.3
    let scene = Scene::default();
    let work = scene.hold("work");
    let app = App::start(scene.worker(options())).await;
    let answer = app.post("/actors/a/work").begin().await;
    actors(&app).wind_down("a", Some(seconds(60)));
    pass(40_000).await;
    work.open();
    answer.await.expect("an answer").assert_ok("worked");
    settle().await;
    assert_eq!(actors(&app).len(), 0);
}
