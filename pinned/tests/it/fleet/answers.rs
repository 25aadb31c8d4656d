//! What the control plane answers, and what a worker makes of it (W2, W3).

use serde_json::json;

use super::{HEARTBEAT, REGISTER, Script, touch};
use crate::app::{App, pass};
use crate::observe::Metrics;
use crate::scene::{Scene, quick};

#[tokio::test(start_paused = true)]
async fn why_a_worker_does_not_come_up_can_be_asked() {
    // W3.10
    let script = Script::default();
    script.break_off(REGISTER);
    script.answer(REGISTER, 403, json!({ "error": "forbidden" }));
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    // When it asks again is drawn by lot, but never within this.
    let asked = async |times| {
        while script.count(REGISTER) < times {
            pass(10).await;
        }
        pass(10).await;
        app.worker.registration_failure()
    };
    let failure = asked(1).await.unwrap_or_default();
    assert!(failure.starts_with("it cannot be reached: "), "{failure}");
    let failure = asked(2).await.unwrap_or_default();
    assert_eq!(&*failure, r#"it answers 403 {"error":"forbidden"}"#);
    assert_eq!(asked(3).await, None);
    assert!(app.worker.is_ready());
}

#[tokio::test(start_paused = true)]
async fn nothing_but_200_is_success_and_nothing_but_an_object_says_anything() {
    // W2.4, W2.5, W15.1
    let script = Script::default();
    let ack = json!({ "sessionId": "session-9", "expiresInMs": 15_000 });
    script.answer(REGISTER, 201, ack.clone());
    script.answer(REGISTER, 204, ack.clone());
    script.answer(REGISTER, 200, json!([ack]));
    script.answer(REGISTER, 200, json!("session-9"));
    let metrics = Metrics::capture();
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    let failures = |reason: &str| {
        metrics.value(&format!(
            "pinned_control_plane_failures_total{{operation=register,reason={reason}}}"
        ))
    };
    while script.count(REGISTER) < 5 {
        assert_eq!(app.worker.session_id(), None);
        pass(500).await;
    }
    assert_eq!((failures("rejected"), failures("malformed")), (2.0, 2.0));
    assert_eq!(app.worker.session_id().as_deref(), Some("session-1"));

    script.answer(HEARTBEAT, 202, json!({ "expiresInMs": 15_000 }));
    script.answer(HEARTBEAT, 200, json!([{ "expiresInMs": 15_000 }]));
    let beats = script.count(HEARTBEAT);
    while script.count(HEARTBEAT) < beats + 2 {
        pass(500).await;
    }
    let failures = |reason: &str| {
        metrics.value(&format!(
            "pinned_control_plane_failures_total{{operation=heartbeat,reason={reason}}}"
        ))
    };
    assert_eq!((failures("rejected"), failures("malformed")), (1.0, 1.0));
    // A refusal whose body is no object asks for nothing.
    script.answer(HEARTBEAT, 409, json!(["reregister", true]));
    let registers = script.count(REGISTER);
    pass(6_500).await;
    assert_eq!(script.count(REGISTER), registers);
}

#[tokio::test(start_paused = true)]
async fn orders_in_the_answer_to_a_registration_are_not_read() {
    // W3.9
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    touch(&app, "a", "session-1", 1).await;
    let order = json!({ "type": "wind_down", "id": "a", "deadline": 0, "msgId": "m1" });
    script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
    script.answer(
        REGISTER,
        200,
        json!({ "sessionId": "session-2", "expiresInMs": 15_000, "messages": [order] }),
    );
    pass(6_500).await;
    assert_eq!(app.worker.session_id().as_deref(), Some("session-2"));
    assert!(scene.steps().iter().all(|step| step != "teardown"));
    let confirmed = |beat: &serde_json::Value| beat.to_string().contains("m1");
    assert!(!script.sent(HEARTBEAT).iter().any(confirmed));
}
