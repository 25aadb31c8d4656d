//! `POST /_wake` (H14).

use crate::app::{App, pass, settle};
use crate::observe::Logs;
use crate::scene::{Scene, actors, get, post, quick, seconds};
use crate::wind_down::begin_drain;

#[tokio::test(start_paused = true)]
async fn a_wake_activates_in_the_background() {
    // H14.2, H14.4
    let scene = Scene::default();
    let setup = scene.hold("setup");
    let app = App::start(scene.placed_worker(quick())).await;
    for _ in 0..2 {
        let reply = post(&app, "/actors/a/_wake").send().await;
        assert_eq!(
            (reply.status.as_u16(), &*reply.body),
            (202, r#"{"activating":true}"#)
        );
    }
    setup.open();
    settle().await;
    post(&app, "/actors/a/_wake")
        .send()
        .await
        .assert_ok(r#"{"ok":true}"#);
    assert_eq!((actors(&app).activations(), actors(&app).len()), (1, 1));
    get(&app, "/actors/a").send().await.assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn a_wake_joins_the_activation_of_a_request() {
    // H14.2
    let scene = Scene::default();
    let setup = scene.hold("setup");
    let app = App::start(scene.placed_worker(quick())).await;
    let request = get(&app, "/actors/a").begin().await;
    assert_eq!(post(&app, "/actors/a/_wake").send().await.status, 202);
    setup.open();
    request.await.expect("an answer").assert_ok("here");
    assert_eq!(actors(&app).activations(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wake_asks_no_authorizer_but_passes_every_other_check() {
    // H14.1
    let scene = Scene::default();
    scene.fail("authorize");
    let app = App::start(scene.placed_worker(quick())).await;
    app.post("/actors/a/_wake")
        .send()
        .await
        .assert_error(403, "invalid attestation");
    post(&app, "/actors/%24/_wake")
        .send()
        .await
        .assert_error(400, "id must contain only [A-Za-z0-9._~-]");
    let malformed = post(&app, "/actors/a/_wake")
        .header("pinboard-epoch", "x")
        .send()
        .await;
    malformed.assert_error(400, "malformed placement epoch");
    assert_eq!(actors(&app).len(), 0);
    assert_eq!(
        post(&app, "/actors/a/_wake").epoch(2).send().await.status,
        202
    );
    settle().await;
    let stale = post(&app, "/actors/a/_wake").epoch(1).send().await;
    stale.assert_refused("stale placement epoch; retry");
    actors(&app).abort("a");
    post(&app, "/actors/a/_wake")
        .send()
        .await
        .assert_refused("instance closing; retry");
    let _drain = begin_drain(&app.worker, None).await;
    post(&app, "/actors/b/_wake")
        .send()
        .await
        .assert_refused("host draining; retry");
}

#[tokio::test(start_paused = true)]
async fn a_failed_background_activation_is_logged_and_leaves_nothing() {
    // H14.3
    let logs = Logs::capture();
    let scene = Scene::default();
    scene.fail("setup");
    let app = App::start(scene.placed_worker(quick())).await;
    assert_eq!(post(&app, "/actors/a/_wake").send().await.status, 202);
    settle().await;
    logs.assert_one("ERROR", "activation failed", "a");
    assert_eq!(
        (
            actors(&app).len(),
            actors(&app).activations(),
            actors(&app).evictions()
        ),
        (0, 0, 0)
    );
    assert!(
        !scene
            .steps()
            .iter()
            .any(|step| step.starts_with("release "))
    );
}

#[tokio::test(start_paused = true)]
async fn the_queue_deadline_does_not_drop_a_queued_wake() {
    // H14.3, H4.3
    let scene = Scene::default();
    let setup = scene.hold("setup");
    let options = quick()
        .max_concurrent_activations(1)
        .activation_queue_deadline(seconds(1));
    let app = App::start(scene.placed_worker(options)).await;
    for id in ["a", "b"] {
        assert_eq!(
            post(&app, &format!("/actors/{id}/_wake"))
                .send()
                .await
                .status,
            202
        );
    }
    pass(5_000).await;
    get(&app, "/actors/b")
        .send()
        .await
        .assert_refused("activation queue full; retry");
    setup.open();
    settle().await;
    assert_eq!(actors(&app).activations(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_state_store_there_is_no_wake() {
    // H1.13
    let app = App::start(Scene::default().worker(quick())).await;
    assert_eq!(app.post("/actors/a/_wake").send().await.status, 404);
    assert_eq!(actors(&app).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn after_an_eviction_a_wake_finds_a_whole_instance_again() {
    // The first event after an eviction may be any: setup has completed.
    let scene = Scene::default();
    let app = App::start(scene.placed_worker(quick())).await;
    get(&app, "/actors/a").epoch(1).text().await;
    pass(11_010).await;
    assert_eq!(
        post(&app, "/actors/a/_wake").epoch(2).send().await.status,
        202
    );
    settle().await;
    assert_eq!((scene.context().id(), actors(&app).activations()), ("a", 2));
    post(&app, "/actors/a/_wake")
        .epoch(2)
        .send()
        .await
        .assert_ok(r#"{"ok":true}"#);
}
