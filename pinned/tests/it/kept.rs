//! Placements kept on idle (H13).
//!
//! - H13.1, the type: `release_placement_on_idle` takes a `bool`.
//! - H13.3, duplicates: they come with a register answer, and are aborts.

use crate::app::{App, pass, settle};
use crate::observe::Logs;
use crate::scene::{Scene, actors, get, quick, seconds};
use crate::wind_down::begin_drain;

/// A worker that keeps placements, with an instance `a` at epoch 1 whose idle close is held up in its teardown.
async fn closing(scene: &Scene) -> (App, crate::app::Gate) {
    let teardown = scene.hold("teardown");
    let app = App::start(scene.placed_worker(quick().release_placement_on_idle(false))).await;
    get(&app, "/actors/a").epoch(1).text().await;
    pass(11_010).await;
    assert_eq!(scene.steps(), ["open a", "setup", "teardown"]);
    (app, teardown)
}

fn releases(scene: &Scene) -> usize {
    scene
        .steps()
        .iter()
        .filter(|step| step.starts_with("release "))
        .count()
}

#[tokio::test(start_paused = true)]
async fn an_idle_close_keeps_the_placement_where_told_to() {
    // H13.2, H12.4, H8.7
    let scene = Scene::default();
    let (app, teardown) = closing(&scene).await;
    teardown.open();
    settle().await;
    assert_eq!(scene.steps(), ["flush", "dispose"]);
    get(&app, "/actors/a")
        .epoch(1)
        .send()
        .await
        .assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn placements_are_handed_back_by_default() {
    // H13.1
    let scene = Scene::default();
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").text().await;
    pass(11_010).await;
    assert_eq!(releases(&scene), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_during_a_kept_close_waits_and_is_served() {
    // H13.3, H3.9, E10
    let scene = Scene::default();
    let (app, teardown) = closing(&scene).await;
    let request = get(&app, "/actors/a").epoch(1).begin().await;
    pass(30_000).await;
    assert!(!request.is_finished());
    teardown.open();
    request.await.expect("an answer").assert_ok("here");
    assert_eq!(
        (
            releases(&scene),
            actors(&app).activations(),
            actors(&app).evictions()
        ),
        (0, 2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn whatever_forces_a_kept_close_makes_it_hand_the_placement_back_once() {
    // H13.3, H10.3, H8.9, H11.1, H11.12, E11
    for how in [
        "local wind-down",
        "operator wind-down",
        "drain",
        "server drain",
        "abort",
        "shutdown",
    ] {
        let scene = Scene::default();
        let (app, teardown) = closing(&scene).await;
        let request = get(&app, "/actors/a").epoch(1).begin().await;
        let mut shutdown = None;
        match how {
            "local wind-down" => scene.context().lease().wind_down(None),
            "operator wind-down" => actors(&app).wind_down("a", Some(seconds(60))),
            "drain" => drop(begin_drain(&app.worker, None).await),
            "server drain" => app.worker.server_drain(Some(None)),
            "abort" => actors(&app).abort("a"),
            _ => {
                let app = app.clone();
                shutdown = Some(crate::app::spawn(async move { app.shutdown().await }));
            }
        }
        request
            .await
            .expect("an answer")
            .assert_refused("instance closing; retry");
        teardown.open();
        settle().await;
        if let Some(shutdown) = shutdown {
            shutdown.await.expect("shut down");
        }
        assert_eq!((releases(&scene), actors(&app).len()), (1, 0), "{how}");
        // H11.1, H11.10
        assert_eq!(actors(&app).evictions(), 1, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_at_the_last_step_still_releases() {
    // H13.3: the placement is asked about once more before the record goes.
    let scene = Scene::default();
    let flush = scene.hold("flush");
    let app = App::start(scene.placed_worker(quick().release_placement_on_idle(false))).await;
    get(&app, "/actors/a").epoch(1).text().await;
    pass(11_010).await;
    // A task that stays until the last step of the close, and asks for the wind-down when it is cut.
    struct AsksWhenCut(Scene);
    impl Drop for AsksWhenCut {
        fn drop(&mut self) {
            self.0.context().lease().wind_down(None);
        }
    }
    let asks = AsksWhenCut(scene.clone());
    scene.context().spawn(async move {
        let _asks = asks;
        std::future::pending::<()>().await;
    });
    settle().await;
    scene.steps();
    flush.open();
    settle().await;
    assert_eq!(
        scene.steps(),
        ["dispose", "release /actors/a 1", "released"]
    );
    assert_eq!(actors(&app).len(), 0);
    get(&app, "/actors/a")
        .epoch(1)
        .send()
        .await
        .assert_refused("released placement epoch; retry");
}

#[tokio::test(start_paused = true)]
async fn epochs_after_a_kept_and_after_a_releasing_close() {
    // E12, H13.4, H12.4
    let scene = Scene::default();
    let logs = Logs::capture();
    let (app, teardown) = closing(&scene).await;
    teardown.open();
    get(&app, "/actors/a")
        .epoch(1)
        .send()
        .await
        .assert_ok("here");
    actors(&app).abort("a");
    settle().await;
    assert_eq!(releases(&scene), 1);
    get(&app, "/actors/a")
        .epoch(1)
        .send()
        .await
        .assert_refused("released placement epoch; retry");
    get(&app, "/actors/a")
        .epoch(2)
        .send()
        .await
        .assert_ok("here");
    logs.assert_none("ERROR");
}
