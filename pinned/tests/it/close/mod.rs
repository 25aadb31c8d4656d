//! The close and its order (H11).
//!
//! - H11.3, trays and the cluster client: there are no trays yet, and the client is a handle that holds nothing open.
//! - H11.4, cleanup: dropping a future is the whole cleanup that Rust knows; what is waited for is the teardown.
//! - H11.11, failed constructions and E28: the host itself constructs records, and nothing of that can fail.
//! - H11.11, transport and worker phases: both come with the registration.
//! - H11.13: there is no durable work before trays exist.

mod shutdown;
mod threads;

use std::time::Duration;

use futures_util::StreamExt;

use crate::app::{App, closed_with, pass, settle, spawn};
use crate::observe::Logs;
use crate::scene::{Scene, actors, get, open, post, quick, seconds};

#[tokio::test(start_paused = true)]
async fn the_order_of_a_close_holds_step_by_step() {
    // H11.3, H11.4, H10.8, E15
    let scene = Scene::default();
    scene.hold("work");
    scene.hold("task");
    scene.hold("stream");
    let (teardown, flush, release) = (
        scene.hold("teardown"),
        scene.hold("flush"),
        scene.hold("release"),
    );
    let app = App::start(scene.placed_worker(quick())).await;
    let work = post(&app, "/actors/a/work").epoch(3).begin().await;
    post(&app, "/actors/a/task").text().await;
    let body = open(&app, "/actors/a/stream").await.into_body();
    settle().await;
    scene.steps();

    actors(&app).wind_down("a", Some(Duration::ZERO));
    settle().await;
    let mut steps = scene.steps();
    steps[..2].sort();
    assert_eq!(steps, ["task cut", "work cut", "teardown"]);
    work.await
        .expect("an answer")
        .assert_error(503, "instance aborted");
    assert_eq!(actors(&app).evictions(), 1);

    teardown.open();
    settle().await;
    assert_eq!(scene.steps(), ["flush"]);

    flush.open();
    settle().await;
    assert_eq!(scene.steps(), ["release /actors/a 3"]);
    // The epoch is fenced off by now, though a record is still there.
    assert_eq!(actors(&app).len(), 1);
    get(&app, "/actors/a")
        .epoch(3)
        .send()
        .await
        .assert_refused("released placement epoch; retry");

    release.open();
    settle().await;
    assert_eq!(scene.steps(), ["released", "stream cut", "dispose"]);
    assert_eq!(actors(&app).len(), 0);
    drop(body);
}

#[tokio::test(start_paused = true)]
async fn clients_see_the_end_of_a_stream_only_after_the_release_was_acknowledged() {
    // H11.8, H6.9, E14
    let scene = Scene::default();
    let (stream, release) = (scene.hold("stream"), scene.hold("release"));
    let app = App::start(scene.placed_worker(quick())).await;
    let mut body = open(&app, "/actors/a/stream")
        .await
        .into_body()
        .into_data_stream();
    let mut socket = get(&app, "/actors/a/socket")
        .connect()
        .await
        .expect("a socket");
    body.next().await.expect("a chunk").expect("a chunk");
    actors(&app).abort("a");
    settle().await;
    let end = spawn(async move { closed_with(&mut socket).await });
    settle().await;
    assert!(!end.is_finished());
    // Chunks flow on meanwhile.
    stream.open();
    assert_eq!(
        &*body.next().await.expect("a chunk").expect("a chunk"),
        b"two"
    );
    release.open();
    assert_eq!(end.await.expect("a close frame").0, 1012);
    assert!(body.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_hung_release_is_waited_for_at_most_five_seconds() {
    // H11.7, H11.8, E14
    let scene = Scene::default();
    let release = scene.hold("release");
    let app = App::start(scene.placed_worker(quick())).await;
    let mut socket = get(&app, "/actors/a/socket")
        .connect()
        .await
        .expect("a socket");
    actors(&app).abort("a");
    let end = spawn(async move { closed_with(&mut socket).await });
    pass(4_900).await;
    assert!(!end.is_finished());
    pass(200).await;
    assert!(end.is_finished() && actors(&app).is_empty());
    assert!(!scene.steps().contains(&"released".to_owned()));
    release.open();
    settle().await;
    assert_eq!(scene.steps(), ["released"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_release_that_fails_is_logged() {
    // H11.7, W16
    let logs = Logs::capture();
    let scene = Scene::default();
    let release = scene.hold("release");
    scene.fail("release");
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").text().await;
    actors(&app).abort("a");
    pass(5_100).await;
    assert_eq!(actors(&app).len(), 0);
    logs.assert_none("ERROR");
    release.open();
    settle().await;
    logs.assert_one("ERROR", "the release failed", "a");
}

#[tokio::test(start_paused = true)]
async fn a_close_happens_once() {
    // H11.1, H11.10, E20
    let scene = Scene::default();
    let teardown = scene.hold("teardown");
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").text().await;
    for _ in 0..2 {
        actors(&app).wind_down("a", Some(seconds(5)));
        actors(&app).abort("a");
    }
    settle().await;
    teardown.open();
    settle().await;
    actors(&app).wind_down("a", Some(seconds(5)));
    pass(10_000).await;
    assert_eq!(
        scene.steps(),
        [
            "open a",
            "setup",
            "teardown",
            "flush",
            "release /actors/a none",
            "released",
            "dispose"
        ]
    );
    assert_eq!(actors(&app).evictions(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_decided_at_once() {
    // H11.9, H3.10, E8, E9
    let scene = Scene::default();
    let release = scene.hold("release");
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").epoch(1).text().await;
    actors(&app).abort("a");
    get(&app, "/actors/a")
        .send()
        .await
        .assert_refused("instance closing; retry");
    settle().await;
    get(&app, "/actors/a")
        .send()
        .await
        .assert_refused("instance closing; retry");
    release.open();
    settle().await;
    get(&app, "/actors/a")
        .epoch(2)
        .send()
        .await
        .assert_ok("here");
    // Nobody to abort.
    actors(&app).abort("nobody");
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_still_cold_is_not_aborted() {
    // H11.9
    let scene = Scene::default();
    let authorizer = scene.hold("authorize");
    let app = App::start(scene.worker(quick())).await;
    let first = app.get("/actors/a").begin().await;
    actors(&app).abort("a");
    authorizer.open();
    first.await.expect("an answer").assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn in_local_mode_a_request_waits_for_the_close() {
    // H3.9, H11.3: nobody who waits is woken before the record is gone.
    let scene = Scene::default();
    let teardown = scene.hold("teardown");
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    actors(&app).abort("a");
    settle().await;
    let next = app.get("/actors/a").begin().await;
    pass(60_000).await;
    assert!(!next.is_finished());
    teardown.open();
    next.await.expect("an answer").assert_ok("here");
    assert_eq!(scene.steps(), ["setup", "teardown", "setup"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_teardown_the_placement_is_kept_but_fenced_off() {
    // H11.5, E16
    let logs = Logs::capture();
    let scene = Scene::default();
    scene.fail("teardown");
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").epoch(4).text().await;
    scene.steps();
    actors(&app).abort("a");
    settle().await;
    assert_eq!(scene.steps(), ["teardown", "flush", "dispose"]);
    assert_eq!(actors(&app).len(), 0);
    get(&app, "/actors/a")
        .epoch(4)
        .send()
        .await
        .assert_refused("released placement epoch; retry");
    logs.assert_one(
        "ERROR",
        "teardown failed; the placement is not released",
        "a",
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_flush_the_placement_is_kept() {
    // H11.6, E16
    for (how, fenced) in [("aborted", true), ("idle", false), ("wound down", false)] {
        let scene = Scene::default();
        scene.fail("flush");
        let app = App::start(scene.placed_worker(quick())).await;
        get(&app, "/actors/a").epoch(4).text().await;
        scene.steps();
        match how {
            "aborted" => actors(&app).abort("a"),
            "idle" => pass(11_010).await,
            _ => scene.context().lease().wind_down(None),
        }
        settle().await;
        assert_eq!(scene.steps(), ["teardown", "flush", "dispose"], "{how}");
        assert_eq!(actors(&app).len(), 0, "{how}");
        let again = get(&app, "/actors/a").epoch(4).send().await;
        assert_eq!(again.status == 503, fenced, "{how}: {}", again.body);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_control_plane_nothing_is_released() {
    // H11.7
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    actors(&app).abort("a");
    settle().await;
    assert_eq!(
        (actors(&app).len(), scene.steps()),
        (0, vec!["setup".to_owned(), "teardown".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_teardown_spawns_runs_until_the_last_step() {
    // H7.3
    let scene = Scene::default();
    let (teardown, release) = (scene.hold("teardown"), scene.hold("release"));
    scene.hold("task");
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").text().await;
    actors(&app).abort("a");
    settle().await;
    let (ends, stays) = (scene.clone(), scene.clone());
    let ctx = scene.context();
    let first = ctx.spawn(async move {
        tokio::task::yield_now().await;
        ends.note("late task done");
    });
    ctx.spawn(async move {
        let _cut = NotesItsDrop(stays, "late task cut");
        std::future::pending::<()>().await;
    });
    first.await.expect("it ran to its end");
    scene.steps();
    teardown.open();
    settle().await;
    assert_eq!(scene.steps(), ["flush", "release /actors/a none"]);
    release.open();
    settle().await;
    assert_eq!(scene.steps(), ["released", "late task cut", "dispose"]);
}

struct NotesItsDrop(Scene, &'static str);

impl Drop for NotesItsDrop {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_comes_into_an_idle_close_does_not_hold_it_up() {
    // H7.3, H11.2
    let scene = Scene::default();
    let teardown = scene.hold("teardown");
    let app = App::start(scene.worker(quick())).await;
    app.get("/actors/a").text().await;
    pass(11_010).await;
    scene.context().spawn(std::future::pending::<()>());
    teardown.open();
    settle().await;
    assert_eq!((actors(&app).len(), actors(&app).evictions()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn nothing_holds_an_instance_that_is_gone() {
    // H11.3: timers stop first, and none is set in the course of the close.
    let scene = Scene::default();
    let teardown = scene.hold("teardown");
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").text().await;
    actors(&app).wind_down("a", Some(seconds(3_600)));
    settle().await;
    actors(&app).wind_down("a", Some(seconds(7_200)));
    scene.context().lease().wind_down(Some(seconds(1_800)));
    app.worker.server_drain(Some(Some(seconds(900))));
    teardown.open();
    settle().await;
    assert_eq!((actors(&app).len(), scene.held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_keeps_the_exclusive_turn_cannot_wedge_the_close() {
    // H11.3, H11.8: it is cut off before the release, after five seconds.
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    let mut socket = app.get("/actors/a/hog").connect().await.expect("a socket");
    settle().await;
    actors(&app).abort("a");
    pass(5_010).await;
    assert_eq!(closed_with(&mut socket).await.0, 1012);
    drop(socket);
    settle().await;
    assert_eq!(
        (scene.steps(), actors(&app).len()),
        (vec!["setup".to_owned(), "teardown".to_owned()], 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_placement_that_arrives_during_the_close_is_not_handed_back() {
    // H12.4, H3.3
    let scene = Scene::default();
    let teardown = scene.hold("teardown");
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").epoch(1).text().await;
    actors(&app).abort("a");
    settle().await;
    get(&app, "/actors/a")
        .epoch(2)
        .send()
        .await
        .assert_refused("instance closing; retry");
    teardown.open();
    settle().await;
    assert!(scene.steps().contains(&"release /actors/a 1".to_owned()));
    get(&app, "/actors/a")
        .epoch(2)
        .send()
        .await
        .assert_ok("here");
}
