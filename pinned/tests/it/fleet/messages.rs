//! Control messages (W5).

use serde_json::{Value, json};

use super::{HEARTBEAT, Script, attested, touch};
use crate::app::{App, pass};
use crate::observe::Metrics;
use crate::scene::{Actor, Scene, post, quick};

fn wind_down(msg: &str, id: &str, deadline: Value) -> Value {
    json!({ "msgId": msg, "type": "wind_down", "ns": "/actors", "id": id, "deadline": deadline })
}

fn ack(messages: Value) -> Value {
    json!({ "expiresInMs": 15_000, "messages": messages })
}

fn alive(app: &App) -> Vec<String> {
    let stats = app.worker.stats();
    let rows = stats["instances"].as_array().expect("rows").iter();
    rows.map(|row| row["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn messages_are_applied_in_order_and_confirmed_until_that_is_acknowledged() {
    // W5.1, W5.3, W5.7, W4.4
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    for id in ["a", "b"] {
        touch(&app, id, "session-1", 1).await;
    }
    script.answer(
        HEARTBEAT,
        200,
        ack(json!([
            wind_down("m2", "a", json!(0)),
            wind_down("m1", "nobody", json!(2.5))
        ])),
    );
    pass(3_010).await;
    assert_eq!(alive(&app), ["b"]);
    script.answer(HEARTBEAT, 503, json!({}));
    pass(3_000).await;
    assert_eq!(script.last(HEARTBEAT)["acks"], json!(["m1", "m2"]));
    pass(3_000).await;
    // That one gets a 200.
    assert_eq!(script.last(HEARTBEAT)["acks"], json!(["m1", "m2"]));
    pass(3_000).await;
    assert!(script.last(HEARTBEAT).get("acks").is_none());
}

#[tokio::test(start_paused = true)]
async fn behind_a_message_that_fails_the_rest_is_applied_but_not_confirmed() {
    // W5.2, W5.4, W5.6, W5.8, W15.1
    let metrics = Metrics::capture();
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 1).await;
    let bad = [
        json!({ "msgId": "x", "type": "resume", "ns": "/actors", "id": "a", "deadline": 0 }),
        json!({ "msgId": "x", "type": "wind_down", "ns": "/actors", "id": "a" }),
        json!({ "msgId": "x", "type": "wind_down", "ns": "/actors", "id": "a", "deadline": true }),
        json!({ "msgId": "x", "type": "wind_down", "ns": "/actors", "id": "a", "deadline": "1" }),
        json!({ "msgId": "x", "type": "wind_down", "ns": "/actors", "id": 7, "deadline": 0 }),
        json!({ "msgId": "x", "type": "wind_down", "ns": "/nowhere", "id": "a", "deadline": 0 }),
        json!({ "msgId": "x", "type": "wind_down", "ns": 7, "id": "a", "deadline": 0 }),
    ];
    let count = bad.len();
    let mut messages = vec![
        wind_down("first", "nobody", json!(null)),
        json!(7),
        // Without an id it is applied and breaks nothing.
        json!({ "type": "wind_down", "id": "nobody", "deadline": 1 }),
        wind_down("second", "nobody", json!(-3)),
    ];
    messages.extend(bad);
    messages.push(wind_down("behind", "a", json!(0)));
    script.answer(HEARTBEAT, 200, ack(messages.into()));
    pass(3_010).await;
    assert!(alive(&app).is_empty());
    pass(3_000).await;
    assert_eq!(script.last(HEARTBEAT)["acks"], json!(["first", "second"]));
    let failures = |reason: &str| {
        metrics.value(&format!(
            "pinned_control_plane_failures_total{{operation=control_message,reason={reason}}}"
        ))
    };
    assert_eq!(failures("callback"), count as f64);
    assert_eq!(failures("malformed"), 1.0);
    script.answer(HEARTBEAT, 200, ack(json!({})));
    pass(3_000).await;
    assert_eq!(failures("malformed_batch"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn with_several_namespaces_a_message_must_name_one() {
    // W5.6
    let script = Script::default();
    let builder = script
        .builder(&Scene::default(), quick())
        .host_with::<Actor>(quick().namespace("/others"));
    let app = App::start(builder).await;
    pass(1).await;
    touch(&app, "a", "session-1", 1).await;
    script.answer(
        HEARTBEAT,
        200,
        ack(json!([{ "msgId": "m", "type": "wind_down", "ns": null, "id": "a", "deadline": 0 }])),
    );
    pass(6_010).await;
    assert_eq!(alive(&app), ["a"]);
    assert!(script.last(HEARTBEAT).get("acks").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_new_session_forgets_what_was_to_be_confirmed() {
    // W5.3
    let script = Script::default();
    let _app = script.start(&Scene::default()).await;
    script.answer(
        HEARTBEAT,
        200,
        ack(json!([wind_down("m", "nobody", json!(1))])),
    );
    script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
    pass(9_100).await;
    assert!(script.sent(HEARTBEAT)[1].get("acks").is_some());
    assert!(script.last(HEARTBEAT).get("acks").is_none());
}

#[tokio::test(start_paused = true)]
async fn messages_that_come_late_and_twice_end_in_the_newest() {
    // W5.1, W5.2, and `cases.md`: "control messages delivered late, twice, out of order: the end state is that of the newest"
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    let gate = scene.hold("work");
    touch(&app, "a", "session-1", 1).await;
    let call = post(&app, "/actors/a/work").epoch(1);
    let work = attested(&app, call, "session-1").begin().await;
    // The order comes, comes again because its confirmation was lost, and is taken back in the list that repeats it.
    script.answer(
        HEARTBEAT,
        200,
        ack(json!([wind_down("m1", "a", json!(20))])),
    );
    script.answer(HEARTBEAT, 503, json!({}));
    script.answer(
        HEARTBEAT,
        200,
        ack(json!([
            wind_down("m1", "a", json!(14)),
            wind_down("m2", "a", json!(null))
        ])),
    );
    pass(40_000).await;
    assert!(!work.is_finished());
    assert_eq!(alive(&app), ["a"]);
    assert!(script.last(HEARTBEAT).get("acks").is_none());
    // And the other way round: taken back, and then ordered anew, with everything before it told once more.
    script.answer(
        HEARTBEAT,
        200,
        ack(json!([
            wind_down("m1", "a", json!(1)),
            wind_down("m2", "a", json!(null)),
            wind_down("m2", "a", json!(null)),
            wind_down("m3", "a", json!(5))
        ])),
    );
    pass(3_000).await;
    assert!(!work.is_finished(), "what was taken back cut nothing off");
    pass(6_000).await;
    let cut = work.await.expect("an answer");
    assert_eq!(cut.status, 503);
    assert!(alive(&app).is_empty());
    drop(gate);
}
