//! Handing placements back (W3.11 to W3.15).

use serde_json::json;

use super::{HEARTBEAT, REGISTER, RELEASE, Script, touch};
use crate::app::{App, pass};
use crate::observe::Metrics;
use crate::scene::{Scene, quick};

#[tokio::test(start_paused = true)]
async fn a_release_is_a_list_with_the_epoch_as_text() {
    // W3.11, W3.15
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 9_007_199_254_740_993).await;
    // Idle for 10 s.
    pass(12_000).await;
    assert_eq!(
        script.sent(RELEASE),
        [json!([{
            "sessionId": "session-1", "namespace": "/actors", "id": "a", "epoch": "9007199254740993"
        }])]
    );
}

#[tokio::test(start_paused = true)]
async fn releases_that_wait_for_one_under_way_go_together() {
    // W3.12
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    for id in ["a", "b", "c"] {
        touch(&app, id, "session-1", 1).await;
    }
    let gate = script.hold(RELEASE);
    for id in ["a", "b", "c"] {
        crate::scene::actors(&app).wind_down(id, Some(std::time::Duration::ZERO));
        pass(10).await;
    }
    assert_eq!(script.count(RELEASE), 1);
    gate.open();
    pass(10).await;
    let sizes: Vec<usize> = script
        .sent(RELEASE)
        .iter()
        .filter_map(|batch| Some(batch.as_array()?.len()))
        .collect();
    assert_eq!(sizes, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_release_without_a_session_waits_for_the_next_one_and_keeps_nobody() {
    // W3.13, W3.7
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 4).await;
    script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
    script.answer(REGISTER, 500, json!({}));
    pass(3_010).await;
    assert_eq!(app.worker.session_id(), None);
    crate::scene::actors(&app).wind_down("a", Some(std::time::Duration::ZERO));
    pass(10).await;
    assert_eq!(script.count(RELEASE), 0);
    assert_eq!(app.worker.stats()["instances"], json!([]));
    pass(6_000).await;
    assert_eq!(
        script.sent(RELEASE),
        [json!([{ "sessionId": "session-2", "namespace": "/actors", "id": "a", "epoch": "4" }])]
    );
}

#[tokio::test(start_paused = true)]
async fn releases_that_hang_hold_up_no_heartbeat() {
    // W3.13, W4.2: the lease must not lapse because of them.
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 4).await;
    script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
    script.answer(REGISTER, 500, json!({}));
    pass(3_010).await;
    crate::scene::actors(&app).wind_down("a", Some(std::time::Duration::ZERO));
    let _never_opened = script.hold(RELEASE);
    // Registered again by then, at the latest.
    pass(6_000).await;
    assert_eq!((script.count(REGISTER), script.count(RELEASE)), (3, 1));
    let before = script.count(HEARTBEAT);
    pass(9_100).await;
    assert!(script.count(HEARTBEAT) >= before + 3);
    assert!(app.worker.lease().healthy());
}

#[tokio::test(start_paused = true)]
async fn a_release_that_does_not_get_through_is_tried_three_times_and_dropped() {
    // W3.14, W15.1
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 1).await;
    script.answer(RELEASE, 503, json!({}));
    script.break_off(RELEASE);
    script.answer(RELEASE, 204, json!({}));
    let metrics = Metrics::capture();
    crate::scene::actors(&app).wind_down("a", Some(std::time::Duration::ZERO));
    pass(190).await;
    assert_eq!(script.count(RELEASE), 1);
    pass(20).await;
    assert_eq!(script.count(RELEASE), 2);
    pass(380).await;
    assert_eq!(script.count(RELEASE), 2);
    pass(30).await;
    assert_eq!(script.count(RELEASE), 3);
    let exhausted = "pinned_control_plane_failures_total{operation=release,reason=exhausted}";
    assert_eq!(metrics.value(exhausted), 1.0);
    pass(60_000).await;
    assert_eq!(script.count(RELEASE), 3);
}

#[tokio::test(start_paused = true)]
async fn an_activation_that_failed_hands_nothing_back() {
    // W3.15, H4.6
    let script = Script::default();
    let scene = Scene::default();
    let app = App::start(script.builder(&scene, quick())).await;
    pass(1).await;
    scene.fail("setup");
    let call = app.get("/actors/a").epoch(1);
    let reply = super::attested(&app, call, "session-1").send().await;
    assert_ne!(reply.status, 200);
    pass(1_000).await;
    assert_eq!(script.count(RELEASE), 0);
}
