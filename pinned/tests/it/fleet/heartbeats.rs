//! Heartbeats (W4).

use serde_json::json;

use super::{HEARTBEAT, REGISTER, Script, sorted_keys, touch};
use crate::app::{App, pass};
use crate::observe::{Logs, Metrics};
use crate::scene::{Scene, post, quick, seconds};

#[tokio::test(start_paused = true)]
async fn a_heartbeat_goes_out_each_interval_with_a_fresh_challenge() {
    // W4.1, W4.2, W17.1
    let script = Script::default();
    let _app = script.start(&Scene::default()).await;
    pass(2_990).await;
    assert_eq!(script.count(HEARTBEAT), 0);
    pass(10).await;
    assert_eq!(script.count(HEARTBEAT), 1);
    pass(9_000).await;
    let sent = script.sent(HEARTBEAT);
    assert_eq!(sent.len(), 4);
    for beat in &sent {
        assert_eq!(
            sorted_keys(beat),
            [
                "challenge",
                "challengeValue",
                "draining",
                "headroom",
                "sessionId"
            ]
        );
        assert_eq!(beat["sessionId"], "session-1");
    }
    let mut challenges: Vec<&str> = sent
        .iter()
        .flat_map(|beat| [&beat["challenge"], &beat["challengeValue"]])
        .filter_map(|text| text.as_str())
        .collect();
    challenges.sort_unstable();
    challenges.dedup();
    assert_eq!(challenges.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_neither_stretches_the_beat_nor_the_lease() {
    // W4.2, W7.2
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    let gate = script.hold(HEARTBEAT);
    pass(3_000).await;
    let sent = app.worker.domain().monotonic();
    assert_eq!(script.count(HEARTBEAT), 1);
    pass(2_000).await;
    gate.open();
    pass(10).await;
    let end = app.worker.lease().expires_at_monotonic().expect("a lease");
    let term = end - sent;
    assert!(term <= seconds(15) && term > seconds(14), "{term:?}");
    pass(990).await;
    assert_eq!(script.count(HEARTBEAT), 2);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_get_through_keeps_session_and_beat() {
    // W4.9, W4.3, W15.1
    let script = Script::default();
    let app = script.start(&Scene::default()).await;
    let metrics = Metrics::capture();
    script.break_off(HEARTBEAT);
    for (status, body) in [
        (409, json!({ "error": "no" })),
        (403, json!({})),
        (503, json!({})),
        (401, json!({})),
        (200, json!({})),
        (200, json!({ "expiresInMs": "15000" })),
    ] {
        script.answer(HEARTBEAT, status, body);
    }
    pass(21_100).await;
    assert_eq!((script.count(HEARTBEAT), script.count(REGISTER)), (7, 1));
    let failures = |reason: &str| {
        metrics.value(&format!(
            "pinned_control_plane_failures_total{{operation=heartbeat,reason={reason}}}"
        ))
    };
    assert_eq!(failures("transport"), 1.0);
    assert_eq!(failures("rejected"), 3.0);
    assert_eq!(failures("unauthorized"), 1.0);
    assert_eq!(failures("malformed"), 2.0);
    // The lease ran out meanwhile; the next beat restores it, without registering again.
    assert!(!app.worker.is_ready());
    pass(3_000).await;
    assert!(app.worker.is_ready());
    assert_eq!(script.count(REGISTER), 1);
}

#[tokio::test(start_paused = true)]
async fn a_displaced_worker_aborts_everything_and_never_registers_again() {
    // W4.8, W17.5, W4.6, W15.1
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    touch(&app, "a", "session-1", 1).await;
    let refusal =
        json!({ "error": "displaced by epoch 2", "superseded": true, "reregister": true });
    script.answer(HEARTBEAT, 409, refusal);
    let (metrics, logs) = (Metrics::capture(), Logs::capture());
    pass(3_100).await;
    assert!(app.worker.is_superseded() && !app.worker.is_ready());
    assert_eq!(app.worker.stats()["instances"], json!([]));
    let count = "pinned_control_plane_failures_total{operation=heartbeat,reason=superseded}";
    assert_eq!(metrics.value(count), 1.0);
    assert_eq!(metrics.value("pinned_registered"), 0.0);
    assert_eq!(logs.events("ERROR", "").len(), 1);
    // The close hands back with the old session (W3.15).
    assert_eq!(
        script.last("/registry/release")[0]["sessionId"],
        "session-1"
    );
    pass(120_000).await;
    assert_eq!((script.count(HEARTBEAT), script.count(REGISTER)), (1, 1));
    // `cases.md`: "SIGTERM while superseded". There is nothing left to drain, and nobody to be told.
    app.worker.drain(Some(seconds(30))).await;
    app.shutdown().await;
    assert_eq!((script.count(HEARTBEAT), script.count(REGISTER)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_told_at_once_also_while_a_beat_is_under_way() {
    // W4.11, W13.1
    let script = Script::default();
    let scene = Scene::default();
    let app = script.start(&scene).await;
    scene.hold("work");
    let _work = post(&app, "/actors/a/work").begin().await;
    let gate = script.hold(HEARTBEAT);
    pass(3_000).await;
    assert_eq!(script.count(HEARTBEAT), 1);
    let _drain = crate::wind_down::begin_drain(&app.worker, Some(seconds(60))).await;
    gate.open();
    pass(1).await;
    assert_eq!(script.count(HEARTBEAT), 2);
    assert_eq!(script.last(HEARTBEAT)["draining"], true);
    // It stays so, and a deadline of the worker's own is not told.
    pass(3_000).await;
    assert_eq!(script.last(HEARTBEAT)["draining"], true);
    assert!(script.last(HEARTBEAT).get("drainDeadline").is_none());
    app.worker.revoke_drain();
    pass(1).await;
    assert_eq!(script.last(HEARTBEAT)["draining"], false);
    assert_eq!(script.count(HEARTBEAT), 4);
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_the_loop_is_counted_and_it_starts_again() {
    // W4.10, W15.1
    let script = Script::default();
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let probe = std::sync::Arc::clone(&asked);
    let builder = script
        .builder(&Scene::default(), quick())
        .headroom(move || {
            let asked = probe.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(asked != 1, "the probe breaks once");
            asked
        });
    let metrics = Metrics::capture();
    let _app = App::start(builder).await;
    pass(3_100).await;
    let crashed = "pinned_control_plane_failures_total{operation=registration_loop,reason=crashed}";
    assert_eq!(metrics.value(crashed), 1.0);
    assert_eq!(script.count(HEARTBEAT), 0);
    pass(3_000).await;
    assert_eq!(script.count(HEARTBEAT), 1);
    // W11.1
    assert_eq!(script.last(HEARTBEAT)["headroom"], 2);
}
