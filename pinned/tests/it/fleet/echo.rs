//! The operator's drain, echoed in acks (W12).

use serde_json::{Value, json};

use super::{HEARTBEAT, REGISTER, Script, attested, touch};
use crate::app::{App, pass};
use crate::observe::{Logs, Metrics};
use crate::scene::{Scene, quick};

fn ack(draining: Value, deadline: Value) -> Value {
    json!({ "expiresInMs": 15_000, "draining": draining, "drainDeadline": deadline })
}

#[tokio::test(start_paused = true)]
async fn an_echoed_drain_refuses_new_ids_and_undrain_admits_them_again() {
    // W12.3, W12.4
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    script.answer(HEARTBEAT, 200, ack(json!(true), json!(null)));
    pass(3_010).await;
    assert!(app.worker.is_draining());
    let call = app.get("/actors/a").epoch(1);
    attested(&app, call, "session-1")
        .send()
        .await
        .assert_refused("host draining; retry");
    script.answer(HEARTBEAT, 200, ack(json!(false), json!(null)));
    pass(3_000).await;
    // The worker's own word is another.
    assert_eq!(script.last(HEARTBEAT)["draining"], false);
    // Whatever comes late under the epoch that was turned away stays away: the id may live elsewhere by now (P5.9).
    let call = app.get("/actors/a").epoch(1);
    attested(&app, call, "session-1")
        .send()
        .await
        .assert_refused("released placement epoch; retry");
    assert_eq!(app.worker.stats()["instances"], json!([]));
    touch(&app, "a", "session-1", 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_cuts_off_what_is_left_and_a_steady_countdown_is_no_news() {
    // W12.1, W12.2, W12.3
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    scene.hold("work");
    let call = app.post("/actors/a/work").epoch(1);
    let _work = attested(&app, call, "session-1").begin().await;
    let logs = Logs::capture();
    for left in [12.0, 9.2, 5.9] {
        script.answer(HEARTBEAT, 200, ack(json!(true), json!(left)));
    }
    script.answer(HEARTBEAT, 200, ack(json!(true), json!(2.9)));
    script.answer(HEARTBEAT, 200, ack(json!(true), json!(0)));
    pass(14_900).await;
    assert_eq!(
        app.worker.stats()["instances"].as_array().map(Vec::len),
        Some(1)
    );
    pass(300).await;
    assert_eq!(app.worker.stats()["instances"], json!([]));
    assert_eq!(logs.events("INFO", "server drain begun").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_malformed_counts_as_absent() {
    // W12.1, W15.1
    let metrics = Metrics::capture();
    let script = Script::default();
    script.answer(
        REGISTER,
        200,
        json!({ "sessionId": "session-1", "expiresInMs": 15_000, "draining": "yes", "drainDeadline": 1 }),
    );
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    pass(1).await;
    assert!(!app.worker.is_draining());
    for bad in [json!(-1), json!(true), json!("5"), json!([])] {
        script.answer(HEARTBEAT, 200, ack(json!(true), bad));
    }
    pass(12_100).await;
    assert!(app.worker.is_draining());
    let malformed =
        "pinned_control_plane_failures_total{operation=server_draining,reason=malformed_deadline}";
    assert_eq!(metrics.value(malformed), 4.0);
}
