//! From setup to teardown (H4.8 to H4.12).

use super::*;

#[tokio::test(start_paused = true)]
async fn an_abort_cancels_an_activation_whether_it_runs_or_waits() {
    // H4.9, E27
    let app = App::with::<Archive>(HostOptions::new().max_concurrent_activations(1)).await;
    let running = app.client("/t/slow-1");
    app.probe.seen("at slow-1").await;
    let queued = app.client("/t/slow-2");
    let third = app.client("/t/c");
    settle().await;
    let host = app.host::<Archive>();
    host.abort("slow-2");
    queued.answer().await.assert_aborted();
    assert!(!app.probe.has("setup slow-2"));
    settle().await;
    assert_eq!(host.len(), 2);
    host.abort("slow-1");
    running.answer().await.assert_aborted();
    assert!(app.probe.has("left slow-1"));
    // Its slot is free, and so are the ids.
    third.answer().await.assert_ok("c");
    app.probe.open("slow-2");
    app.get("/t/slow-2").await.assert_ok("slow-2");
    assert!(
        !app.probe.has("teardown slow-1"),
        "what was not set up is not torn down"
    );
}

#[tokio::test(start_paused = true)]
async fn a_success_moves_the_counters_and_notes_the_time() {
    // H4.10
    let metrics = Metrics::capture();
    let app = App::of::<Archive>().await;
    let waiting = app.client("/t/slow");
    app.probe.seen("at slow").await;
    let row = || app.worker().stats()["instances"][0].clone();
    assert!(row().get("activatedAt").is_none());
    app.probe.open("slow");
    waiting.answer().await.assert_ok("slow");
    assert!(row()["activatedAt"].as_u64().expect("a time") > 0);
    assert_eq!(app.worker().stats()["namespaces"]["/t"]["activations"], 1);
    assert_eq!(metrics.value("pinned_instance_activations_total"), 1.0);
    assert_eq!(metrics.value("pinned_active_instances"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn the_next_instance_of_an_id_comes_after_the_end_of_the_last() {
    // H4.11
    let app = App::of::<Archive>().await;
    app.get("/t/heavy").await.assert_ok("heavy");
    app.host::<Archive>().abort("heavy");
    app.probe.seen("at heavy").await;
    let next = app.client("/t/heavy");
    settle().await;
    assert_eq!(app.probe.count("setup heavy"), 1);
    app.probe.open("heavy");
    next.answer().await.assert_ok("heavy");
    let events = app.probe.events();
    assert_eq!(
        events,
        [
            "setup heavy",
            "teardown heavy",
            "at heavy",
            "gone heavy",
            "setup heavy"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_in_the_middle_of_an_activation_lets_its_caller_through() {
    // E31, H10.7, H10.11
    let app = App::of::<Archive>().await;
    let caller = app.client("/t/slow");
    app.probe.seen("at slow").await;
    let worker = app.worker().clone();
    let drained = crate::rig::domain().spawn(async move { worker.drain(Some(secs(60))).await });
    settle().await;
    app.get("/t/other")
        .await
        .assert_retry("host draining; retry");
    app.probe.open("slow");
    caller.answer().await.assert_ok("slow");
    bounded(drained).await.expect("drained");
    assert!(app.probe.index("winding down slow") < app.probe.index("teardown slow"));
    assert!(app.worker().is_drained());
}

#[tokio::test(start_paused = true)]
async fn an_activation_is_cancelled_at_the_deadline_of_a_drain() {
    // H10.7, H4.9
    let app = App::of::<Archive>().await;
    let caller = app.client("/t/slow");
    app.probe.seen("at slow").await;
    let started = crate::rig::domain().monotonic();
    bounded(app.worker().drain(Some(secs(20)))).await;
    assert_eq!(started.elapsed().as_secs(), 20);
    caller.answer().await.assert_aborted();
    assert!(app.probe.has("left slow"));
}

#[tokio::test(start_paused = true)]
async fn a_wind_down_asked_for_by_setup_closes_after_the_first_request() {
    // Asked twice in setup, and once more in teardown with an abort: one close.
    let app = App::of::<Archive>().await;
    app.get("/t/eager").await.assert_ok("eager");
    app.empty::<Archive>().await;
    assert_eq!(
        app.probe.events(),
        [
            "setup eager",
            "winding down eager",
            "teardown eager",
            "gone eager"
        ]
    );
    assert_eq!(app.host::<Archive>().evictions(), 1);
}

#[tokio::test(start_paused = true)]
async fn whatever_comes_first_after_an_eviction_finds_a_set_up_instance() {
    let app = App::of::<Archive>().await;
    let evicted = async || {
        app.host::<Archive>().abort("a");
        app.empty::<Archive>().await;
    };
    app.get("/t/a").await.assert_ok("a");
    evicted().await;
    app.get("/t/a").await.assert_ok("a");
    evicted().await;
    let mut socket = app.socket("/t/a/socket").await.expect("accepted");
    assert_eq!(socket.text().await, "a");
    evicted().await;
    app.get("/t/b/ask/a").await.assert_ok("a");
    app.host::<Archive>().abort("b");
    evicted().await;
    let turn = app.host::<Archive>().read("a").await.expect("a turn");
    assert_eq!(turn.ctx.id(), "a");
    drop(turn);
    evicted().await;
    let instance = app
        .host::<Archive>()
        .instance("a")
        .await
        .expect("an instance");
    assert_eq!(instance.read().await.expect("a turn").ctx.id(), "a");
    assert_eq!(app.probe.count("setup a"), 6);
}
