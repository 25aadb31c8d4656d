//! Registering, and when to try again (W2, W3, W6).

use std::time::Duration;

use pinned::PinnedWorker;
use serde_json::json;

use super::{DEREGISTER, HEARTBEAT, REGISTER, Script, sorted_keys, touch};
use crate::app::{App, pass};
use crate::observe::{Logs, Metrics};
use crate::scene::{Actor, Scene, quick, seconds};

#[tokio::test(start_paused = true)]
async fn a_plain_registration_says_just_what_it_must() {
    // W3.1, W2.1, W2.2, W1.3
    let script = Script::default();
    let scene = Scene::default();
    let builder = script
        .builder(&scene, quick())
        .host_with::<Actor>(quick().namespace("/others"));
    let app = App::start(builder).await;
    pass(1).await;
    let sent = script.last(REGISTER);
    assert_eq!(
        sorted_keys(&sent),
        [
            "advertiseUrl",
            "challenge",
            "challengeValue",
            "clientId",
            "draining",
            "headroom",
            "namespaces",
            "secret"
        ]
    );
    assert_eq!(sent["namespaces"], json!(["/actors", "/others"]));
    assert_eq!(sent["advertiseUrl"], "http://10.0.0.7:8000");
    assert_eq!(sent["headroom"], 512);
    assert_eq!(sent["draining"], false);
    assert_eq!(sent["secret"], app.worker.secret());
    assert_eq!(sent["clientId"], json!(app.worker.client_id()));
    for (field, length) in [
        ("clientId", 32),
        ("challenge", 32),
        ("challengeValue", 32),
        ("secret", 64),
    ] {
        let text = sent[field].as_str().expect("text");
        assert_eq!(text.len(), length, "{field}");
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
        );
    }
    // W1.6
    assert!(app.worker.is_ready());
    assert_eq!(app.worker.session_id().as_deref(), Some("session-1"));
}

#[tokio::test(start_paused = true)]
async fn what_is_configured_is_said_too() {
    // W3.2, W3.3
    let script = Script::default();
    let builder = script
        .builder(&Scene::default(), quick().env("blue"))
        .hostname("pr-42.example.com")
        .env("pr-42")
        .takeover(pinned::wire::registry::Takeover::Deny)
        .epoch(7);
    let _app = App::start(builder).await;
    pass(1).await;
    let sent = script.last(REGISTER);
    assert_eq!(sent["hostname"], "pr-42.example.com");
    assert_eq!(sent["env"], "pr-42");
    assert_eq!(sent["envs"], json!({ "/actors": "blue" }));
    assert_eq!(sent["takeover"], "deny");
    assert_eq!(sent["epoch"], 7);
}

#[test]
fn settings_of_a_fleet_that_contradict_each_other_are_refused() {
    // W1.2
    let builder = || PinnedWorker::builder().host::<Actor>("/actors");
    let cases = [
        (
            builder().pinboard("http://127.0.0.1:1", "t"),
            "ADVERTISE_URL",
        ),
        (
            builder().advertise_url("http://127.0.0.1:2"),
            "PINBOARD_URL",
        ),
        (
            builder()
                .pinboard("127.0.0.1:1", "t")
                .advertise_url("http://127.0.0.1:2"),
            "PINBOARD_URL",
        ),
        (
            builder()
                .pinboard("http://127.0.0.1:1", "t")
                .advertise_url("ftp://127.0.0.1:2"),
            "ADVERTISE_URL",
        ),
        (
            builder()
                .pinboard("http://127.0.0.1:1", "a\nb")
                .advertise_url("http://127.0.0.1:2"),
            "PINBOARD_TOKEN",
        ),
        (builder().env("pr-42"), "hostname"),
        (
            builder().takeover(pinned::wire::registry::Takeover::Deny),
            "hostname",
        ),
        (
            builder()
                .pinboard("http://127.0.0.1:1", "t")
                .advertise_url("http://127.0.0.1:2")
                .heartbeat_interval(Duration::ZERO),
            "heartbeat_interval",
        ),
    ];
    for (builder, expected) in cases {
        let error = builder.build().expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("a\nb"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_registration_is_tried_again_for_ever_with_growing_pauses() {
    // W3.10, W6.1, W6.2, W6.3, W15.1
    let script = Script::default();
    for status in [400, 403, 409, 500, 302, 204] {
        script.answer(REGISTER, status, json!({ "error": "no" }));
    }
    script.break_off(REGISTER);
    script.answer(REGISTER, 200, json!({ "expiresInMs": 15_000 }));
    script.answer(
        REGISTER,
        200,
        json!({ "sessionId": 7, "expiresInMs": 15_000 }),
    );
    script.answer(REGISTER, 200, json!([1]));
    script.answer(
        REGISTER,
        200,
        json!({ "sessionId": "s", "expiresInMs": true }),
    );
    let metrics = Metrics::capture();
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    pass(1).await;
    assert_eq!(script.count(REGISTER), 1);
    assert!(!app.worker.is_ready());
    // The first pause is drawn from 0.3 to 1 of 6 s, and none is longer than 30 s.
    pass(1_700).await;
    assert_eq!(script.count(REGISTER), 1);
    pass(4_400).await;
    assert_eq!(script.count(REGISTER), 2);
    pass(11 * 30_000).await;
    assert!(script.count(REGISTER) == 12, "{}", script.count(REGISTER));
    assert!(app.worker.is_ready());
    // Read first: a reading starts it over.
    assert_eq!(metrics.value("pinned_registered"), 1.0);
    assert_eq!(metrics.value("pinned_registration_failures_total"), 11.0);
    let failures = |reason: &str| {
        metrics.value(&format!(
            "pinned_control_plane_failures_total{{operation=register,reason={reason}}}"
        ))
    };
    assert_eq!(failures("rejected"), 6.0);
    assert_eq!(failures("transport"), 1.0);
    assert_eq!(failures("malformed"), 4.0);
}

#[tokio::test(start_paused = true)]
async fn a_deferral_is_no_failure_and_its_pause_is_a_floor() {
    // W3.10, W6.2, W6.4, W6.5, W15.1
    let script = Script::default();
    script.defer(REGISTER, "4");
    script.defer(REGISTER, "Wed, 21 Oct 2026 07:28:00 GMT");
    let metrics = Metrics::capture();
    let logs = Logs::capture();
    let _app = App::start(script.builder(&Scene::default(), quick())).await;
    pass(3_990).await;
    assert_eq!(script.count(REGISTER), 1);
    // At most 1.7 times as long. The pause after it may be over by then, too.
    pass(2_900).await;
    assert!(script.count(REGISTER) >= 2);
    // No number counts as 1 s, doubled because it is the second.
    pass(3_500).await;
    assert_eq!(script.count(REGISTER), 3);
    assert_eq!(metrics.value("pinned_registration_failures_total"), 0.0);
    let deferred = "pinned_control_plane_failures_total{operation=register,reason=deferred}";
    assert_eq!(metrics.value(deferred), 2.0);
    assert!(logs.events("ERROR", "").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_token_is_an_error_in_the_log_and_tried_again() {
    // W3.10
    let script = Script::default();
    script.answer(REGISTER, 401, json!({ "error": "unauthorized" }));
    let logs = Logs::capture();
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    pass(1_000).await;
    let why = app.worker.registration_failure().expect("it failed");
    assert!(why.contains("PINBOARD_TOKEN"), "{why}");
    pass(6_000).await;
    assert_eq!(script.count(REGISTER), 2);
    assert!(app.worker.is_ready());
    assert_eq!(app.worker.registration_failure(), None);
    assert_eq!(logs.events("ERROR", "").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gets_no_answer_is_given_up_after_five_seconds() {
    // W2.3, W6.6: the pause counts from the start of the attempt
    let script = Script::default();
    let gate = script.hold(REGISTER);
    let _app = App::start(script.builder(&Scene::default(), quick())).await;
    pass(4_900).await;
    assert_eq!(script.count(REGISTER), 1);
    // Given up at 5 s; the next begins 6 s after the first one began, at most.
    pass(1_200).await;
    assert_eq!(script.count(REGISTER), 2);
    gate.open();
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_registers_at_once_with_what_lives_here() {
    // W4.7, W3.4, W3.5, W17.2
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    touch(&app, "b", "session-1", 1).await;
    touch(&app, "a", "session-1", 1).await;
    script.answer(
        HEARTBEAT,
        409,
        json!({ "error": "unknown session", "reregister": true }),
    );
    let metrics = Metrics::capture();
    pass(3_000).await;
    assert_eq!(script.count(HEARTBEAT), 1);
    assert_eq!(script.count(REGISTER), 2);
    let sent = script.last(REGISTER);
    assert_eq!(sent["prevSessionId"], "session-1");
    assert_eq!(sent["instances"], json!({ "/actors": ["a", "b"] }));
    assert_eq!(sent["clientId"], json!(app.worker.client_id()));
    // Its lease runs: nobody else can have them.
    assert_eq!(sent.get("lapsed"), None);
    // None was aborted.
    assert_eq!(
        app.worker.stats()["instances"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(app.worker.stats()["reregistrations"], 1);
    assert_eq!(metrics.value("pinned_registered"), 1.0);
    // A later loss names the session that was lost then.
    script.answer(
        HEARTBEAT,
        200,
        json!({ "expiresInMs": 15_000, "reregister": true }),
    );
    script.answer(HEARTBEAT, 404, json!({ "reregister": true }));
    pass(3_100).await;
    // W4.5
    assert_eq!(script.count(REGISTER), 2);
    pass(3_000).await;
    assert_eq!(script.last(REGISTER)["prevSessionId"], "session-2");
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_lease_has_passed_says_so_when_it_brings_instances_along() {
    // P2.5, P4.4, W3.5
    for id in ["a", ""] {
        let script = Script::default();
        let app = script.start(&Scene::default()).await;
        for _ in 0..5 {
            script.break_off(HEARTBEAT);
        }
        script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
        pass(9_500).await;
        if !id.is_empty() {
            touch(&app, id, "session-1", 1).await;
        }
        pass(8_600).await;
        assert_eq!(script.count(REGISTER), 2);
        let sent = script.last(REGISTER);
        assert_eq!(sent["prevSessionId"], "session-1");
        let expected = (!id.is_empty()).then_some(json!(true));
        assert_eq!(sent.get("lapsed"), expected.as_ref());
        assert!(app.worker.is_ready());
        // The next one finds its lease running.
        script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
        pass(3_100).await;
        assert_eq!(script.count(REGISTER), 3);
        assert_eq!(script.last(REGISTER).get("lapsed"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn duplicates_quit_before_the_lease_is_renewed_and_others_stay() {
    // W3.8, W3.7, W15.1
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    for id in ["a", "b"] {
        touch(&app, id, "session-1", 1).await;
    }
    script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
    script.answer(
        REGISTER,
        200,
        json!({
            "sessionId": "session-2", "expiresInMs": 15_000,
            "duplicates": [{ "ns": "/actors", "id": "a" }, 7, { "ns": "/actors" }, { "ns": "/x", "id": "y" }],
        }),
    );
    let metrics = Metrics::capture();
    pass(3_100).await;
    let stats = app.worker.stats();
    let ids: Vec<&str> = stats["instances"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["id"].as_str())
        .collect();
    assert_eq!(ids, ["b"]);
    assert_eq!(metrics.value("pinned_duplicate_quits_total"), 2.0);
    let malformed =
        "pinned_control_plane_failures_total{operation=register,reason=malformed_duplicates}";
    assert_eq!(metrics.value(malformed), 2.0);
    assert!(app.worker.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_deregisters_once_and_last() {
    // W3.16, W3.17, W3.18, W1.5, W17.4
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    touch(&app, "a", "session-1", 1).await;
    app.shutdown().await;
    assert_eq!(script.order(), [REGISTER, "/registry/release", DEREGISTER]);
    assert_eq!(script.last(DEREGISTER), json!({ "sessionId": "session-1" }));
    assert_eq!(app.worker.session_id(), None);
    assert!(!app.worker.is_ready());
    pass(60_000).await;
    assert_eq!(script.order().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_deregistration_that_does_not_get_through_is_given_up() {
    // W3.16, W3.17, W15.1
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    script.answer(DEREGISTER, 500, json!({}));
    script.break_off(DEREGISTER);
    script.answer(DEREGISTER, 503, json!({}));
    let metrics = Metrics::capture();
    let before = app.worker.domain().monotonic();
    app.shutdown().await;
    assert_eq!(script.count(DEREGISTER), 3);
    assert_eq!((app.worker.domain().monotonic() - before).as_millis(), 600);
    let exhausted = "pinned_control_plane_failures_total{operation=deregister,reason=exhausted}";
    assert_eq!(metrics.value(exhausted), 1.0);
    assert_eq!(app.worker.session_id().as_deref(), Some("session-1"));
    assert!(!app.worker.is_ready());
}

#[tokio::test(start_paused = true)]
async fn without_a_session_nothing_is_deregistered() {
    // W3.16
    let script = Script::default();
    script.answer(REGISTER, 403, json!({}));
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    pass(1).await;
    app.shutdown().await;
    assert_eq!(script.order(), [REGISTER]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_session_of_a_registration_that_is_under_way() {
    // W1.5, W3.16: nobody else would, and ids would go to it until its lease has run out.
    let script = Script::default();
    let gate = script.hold(REGISTER);
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    gate.reached(1).await;
    let open = async {
        pass(1_000).await;
        gate.open();
    };
    tokio::join!(app.shutdown(), open);
    assert_eq!(script.order(), [REGISTER, DEREGISTER]);
    assert_eq!(script.last(DEREGISTER), json!({ "sessionId": "session-1" }));
    pass(60_000).await;
    assert_eq!(script.order().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_hangs_holds_up_a_shutdown_for_five_seconds_at_most() {
    // W2.3, W3.16
    let script = Script::default();
    let gate = script.hold(REGISTER);
    let app = App::start(script.builder(&Scene::default(), quick())).await;
    gate.reached(1).await;
    let before = app.worker.domain().monotonic();
    app.shutdown().await;
    assert!((app.worker.domain().monotonic() - before).as_secs() <= 5);
    gate.open();
    pass(60_000).await;
    assert_eq!(script.order(), [REGISTER]);
}

#[tokio::test(start_paused = true)]
async fn no_heartbeat_beside_a_deregistration_begins_another_session() {
    // W1.5, W3.18
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    let gate = script.hold(DEREGISTER);
    script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
    let open = async {
        pass(4_000).await;
        gate.open();
    };
    tokio::join!(app.shutdown(), open);
    assert_eq!(script.order(), [REGISTER, DEREGISTER]);
    assert_eq!(app.worker.session_id(), None);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_lost_during_a_shutdown_is_not_replaced() {
    // W3.16, W3.18
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    let gate = script.hold(HEARTBEAT);
    script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
    gate.reached(1).await;
    let open = async {
        pass(1_000).await;
        gate.open();
    };
    tokio::join!(app.shutdown(), open);
    pass(60_000).await;
    assert_eq!(script.order(), [REGISTER, HEARTBEAT]);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_instances_go_in_one_registration() {
    // W3.5
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    for id in 0..2_000 {
        touch(&app, &id.to_string(), "session-1", 1).await;
    }
    script.answer(HEARTBEAT, 409, json!({ "reregister": true }));
    pass(seconds(4).as_millis() as u64).await;
    let sent = script.last(REGISTER);
    assert_eq!(
        sent["instances"]["/actors"].as_array().map(Vec::len),
        Some(2_000)
    );
}
