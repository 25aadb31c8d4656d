//! Streams of an instance that closes (H6.3, H6.9, E14, E21).

use super::*;

#[tokio::test(start_paused = true)]
async fn an_abort_ends_a_stream_cleanly_and_its_cleanup_runs_once() {
    // H6.3
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/gated").await;
    app.probe.open("1");
    assert_eq!(stream.text().await, "1");
    stream.assert_open().await;
    app.host::<Feed>().abort("a");
    stream.assert_end().await;
    drop(stream);
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_client_does_not_keep_an_aborted_instance() {
    // H6.3: its body ends although nobody reads it
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/numbers").await;
    assert_eq!(stream.text().await, "0");
    app.host::<Feed>().abort("a");
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
    stream.assert_end().await;
    drop(stream);
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn chunks_flow_on_under_a_close_until_the_release_is_acknowledged() {
    // H6.9, H11.8, E14
    let app = App::placed::<Feed>(HostOptions::new()).await;
    let mut stream = app.stream("/t/a/gated").await;
    app.placements().hold();
    app.get("/t/a/wind-down").await.assert_ok("");
    bounded(app.placements().parked()).await;
    assert!(app.probe.has("teardown"));
    for n in ["1", "2"] {
        app.probe.open(n);
        assert_eq!(stream.text().await, n);
    }
    stream.assert_open().await;
    app.placements().release();
    stream.assert_end().await;
    assert_eq!(app.placements().released().len(), 1);
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_at_the_cap_of_a_release_that_hangs() {
    // E14, H11.7
    let app = App::placed::<Feed>(HostOptions::new()).await;
    let mut stream = app.stream("/t/a/gated").await;
    app.placements().hold();
    app.host::<Feed>().abort("a");
    let since = domain().monotonic();
    stream.assert_end().await;
    assert_eq!((domain().monotonic() - since).as_secs(), 5);
    assert!(app.placements().released().is_empty());
    app.placements().release();
    settle().await;
    assert_eq!(app.placements().released().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_a_stream_without_its_client() {
    // E21, H10.7
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/gated").await;
    stream.assert_open().await;
    bounded(app.worker().drain(None)).await;
    assert!(app.worker().is_drained());
    stream.assert_end().await;
    assert_eq!(app.probe.count("closed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_panics_breaks_its_body_off_and_aborts_the_instance() {
    let app = App::of::<Feed>().await;
    let mut stream = app.stream("/t/a/panic").await;
    assert_eq!(stream.text().await, "0");
    let error = stream.next().await.expect_err("broken off");
    assert!(!error.to_string().contains("secret"), "{error}");
    app.empty::<Feed>().await;
    assert_eq!(app.probe.count("closed"), 1);
    app.get("/t/a").await.assert_ok("here");
    assert_eq!(app.probe.count("setup"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_wants_a_turn_of_a_closing_instance_ends_after_the_release() {
    // H11.8
    let app = App::placed::<Feed>(HostOptions::new()).await;
    let mut stream = app.stream("/t/a/turns").await;
    app.probe.open("chunk 0");
    assert_eq!(stream.text().await, "0");
    stream.assert_open().await;
    app.placements().hold();
    app.host::<Feed>().abort("a");
    bounded(app.placements().parked()).await;
    app.probe.open("chunk 1");
    assert_eq!(stream.text().await, "1");
    stream.assert_open().await;
    app.placements().release();
    stream.assert_end().await;
    assert_eq!(app.probe.count("had a turn"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_that_holds_a_turn_does_not_keep_its_instance() {
    // Promise 4: no stream wedges an instance
    let app = App::placed::<Feed>(HostOptions::new()).await;
    let mut stream = app.stream("/t/a/greedy").await;
    assert_eq!(stream.text().await, "0");
    app.host::<Feed>().abort("a");
    let since = domain().monotonic();
    app.probe.seen("teardown").await;
    assert_eq!((domain().monotonic() - since).as_secs(), 5);
    stream.assert_end().await;
    app.empty::<Feed>().await;
    assert_eq!(app.placements().released().len(), 1);
    app.get("/t/a").await.assert_ok("here");
}
