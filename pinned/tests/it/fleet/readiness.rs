//! 'Worker readiness and recovery' of the operations guide, row by row, through the worker's own `/readyz`; and what a wedged worker
//! is to its fleet.

use std::time::Duration;

use pinned::SelfProbe;
use serde_json::json;

use super::{HEARTBEAT, REGISTER, RELEASE, Script, attested, touch};
use crate::app::{App, Gate, Reply, pass};
use crate::scene::{Scene, quick, seconds};

async fn send(app: &App, id: &str) -> Reply {
    let call = app.get(&format!("/actors/{id}")).epoch(1);
    attested(app, call, "session-1").send().await
}

/// Ready, serving what lives there, and admitting what does not.
async fn assert_serves(app: &App, new: &str) {
    app.probe("/readyz").await.assert_ok("");
    send(app, new).await.assert_ok("here");
    send(app, new).await.assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_its_first_registration_it_is_not_ready_and_keeps_trying() {
    // W1.6, W3.10
    let script = Script::default();
    script.break_off(REGISTER);
    script.defer(REGISTER, "1");
    script.answer(REGISTER, 401, json!({}));
    script.answer(REGISTER, 500, json!({}));
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    for attempt in 1..=4 {
        while script.count(REGISTER) < attempt {
            pass(10).await;
        }
        pass(1).await;
        app.probe("/readyz")
            .await
            .assert_error(503, "not registered");
        app.probe("/livez").await.assert_ok("");
    }
    while script.count(REGISTER) < 5 {
        pass(10).await;
    }
    pass(1).await;
    assert_serves(&app, "a").await;
}

#[tokio::test(start_paused = true)]
async fn registered_with_a_healthy_lease_it_is_ready_serves_and_admits() {
    // W1.6, W7.3
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    for (index, id) in ["a", "b", "c"].into_iter().enumerate() {
        assert_serves(&app, id).await;
        pass(3_000).await;
        assert_eq!(script.count(HEARTBEAT), index + 1);
        assert!(app.worker.lease().healthy());
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_lease_that_is_unhealthy_but_not_expired_it_is_ready_and_admits_nothing_new() {
    // W7.4, W1.6
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 1).await;
    for _ in 0..4 {
        script.break_off(HEARTBEAT);
    }
    // 15 s less the buffer of 5 s.
    pass(10_100).await;
    assert!(!app.worker.lease().healthy() && !app.worker.lease().expired());
    app.probe("/readyz").await.assert_ok("");
    send(&app, "a").await.assert_ok("here");
    send(&app, "b")
        .await
        .assert_refused("lease unhealthy; refusing new activations");
    pass(4_800).await;
    app.probe("/readyz").await.assert_ok("");
}

#[tokio::test(start_paused = true)]
async fn with_an_expired_lease_it_is_not_ready_until_a_heartbeat_is_answered() {
    // W7.4, W7.5, W4.9, W1.6
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 1).await;
    for _ in 0..9 {
        script.break_off(HEARTBEAT);
    }
    pass(15_100).await;
    app.probe("/readyz")
        .await
        .assert_error(503, "lease expired");
    // Readiness fails, liveness does not: a restart would throw away what a renewed lease still serves.
    app.probe("/livez").await.assert_ok("");
    send(&app, "a")
        .await
        .assert_refused("lease expired; not serving");
    let before = script.count(HEARTBEAT);
    pass(9_000).await;
    assert_eq!(script.count(HEARTBEAT), before + 3);
    app.probe("/readyz")
        .await
        .assert_error(503, "lease expired");
    while script.count(HEARTBEAT) < 10 {
        pass(100).await;
    }
    pass(1).await;
    // The one that was there has been idle for too long meanwhile.
    assert_serves(&app, "b").await;
    assert_eq!(script.count(REGISTER), 1);
}

#[tokio::test(start_paused = true)]
async fn draining_with_registration_and_lease_it_is_ready_and_only_empties() {
    // W1.6, W4.11, W17.4
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    let gate = scene.hold("work");
    let call = app.post("/actors/a/work").epoch(1);
    let work = attested(&app, call, "session-1").begin().await;
    let drain = crate::wind_down::begin_drain(&app.worker, Some(seconds(60))).await;
    app.probe("/readyz").await.assert_ok("");
    send(&app, "b").await.assert_refused("host draining; retry");
    send(&app, "a").await.assert_ok("here");
    assert_eq!(script.last(HEARTBEAT)["draining"], true);
    assert!(!app.worker.is_drained());
    gate.open();
    work.await.expect("no panic").assert_ok("worked");
    drain.await.expect("it ends");
    assert!(app.worker.is_drained());
    assert_eq!(script.last(RELEASE)[0]["id"], "a");
    // An empty worker of a valid session is still that.
    app.probe("/readyz").await.assert_ok("");
}

#[tokio::test(start_paused = true)]
async fn superseded_it_is_not_ready_any_more_aborts_and_never_registers_again() {
    // W4.8, W17.5, W1.6
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 1).await;
    script.answer(
        HEARTBEAT,
        409,
        json!({ "error": "displaced", "superseded": true }),
    );
    pass(3_100).await;
    let superseded = "superseded by a worker with a higher epoch";
    app.probe("/readyz").await.assert_error(503, superseded);
    app.probe("/livez").await.assert_ok("");
    assert_eq!(app.worker.stats()["instances"], json!([]));
    pass(3_600_000).await;
    app.probe("/readyz").await.assert_error(503, superseded);
    assert_eq!((script.count(REGISTER), script.count(HEARTBEAT)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn wedged_it_is_not_ready_keeps_its_lease_and_does_not_prove_its_url() {
    // P2.6: a URL that does not answer keeps new placements away, and no more.
    let script = Script::default();
    let scene = Scene::default();
    let gate = Gate::closed();
    let held = gate.clone();
    let probe = SelfProbe::new().also(move || {
        let gate = held.clone();
        async move { gate.pass().await }
    });
    let app = App::start(script.builder(&scene, quick()).self_probe(probe)).await;
    pass(1).await;
    touch(&app, "a", "session-1", 1).await;
    let challenged = async |app: &App| {
        let sent = script.last(HEARTBEAT);
        let asked = sent["challenge"].as_str().expect("text").to_owned();
        app.get(&format!("/_pinned/challenge?challenge={asked}"))
            .header("pinboard-proxy-secret", app.worker.secret())
            .send()
            .await
    };
    pass(4_000).await;
    assert_eq!(challenged(&app).await.status, 200);
    pass(2_000).await;
    let wedged = "wedged: requests to the worker's own router hang";
    app.probe("/readyz").await.assert_error(503, wedged);
    app.probe("/livez").await.assert_error(503, wedged);
    challenged(&app).await.assert_error(503, wedged);
    // Only who may ask learns it.
    let stranger = app.get("/_pinned/challenge?challenge=x").send().await;
    stranger.assert_error(403, "invalid proxy secret");
    let before = script.count(HEARTBEAT);
    pass(Duration::from_secs(30).as_millis() as u64).await;
    assert_eq!(script.count(HEARTBEAT), before + 10);
    assert!(app.worker.lease().healthy());
    gate.open();
    pass(10).await;
    app.probe("/readyz").await.assert_ok("");
    assert_eq!(challenged(&app).await.status, 200);
}
