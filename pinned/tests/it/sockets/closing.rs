//! Sockets of an instance that closes (H6.5, H6.8, H11.8).

use super::*;

#[tokio::test(start_paused = true)]
async fn a_socket_keeps_its_instance_from_idle_eviction_and_not_from_wind_down() {
    // H6.5, H6.8
    let app = App::with::<Room>(short()).await;
    let mut socket = open(&app, "/t/a/echo").await;
    pass(secs(15)).await;
    socket.say("one").await;
    assert_eq!(socket.text().await, "one");
    assert_eq!(app.probe.count("setup"), 1);
    app.get("/t/a/wind-down").await.assert_ok("");
    assert_eq!(socket.closed().await, (1012, text("instance closed")));
    app.empty::<Room>().await;
    assert!(app.probe.index("teardown") < app.probe.index("left echo"));
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_a_socket_without_its_client() {
    // E21
    let app = App::of::<Room>().await;
    let mut socket = open(&app, "/t/a/echo").await;
    bounded(app.worker().drain(None)).await;
    assert!(app.worker().is_drained());
    assert_eq!(socket.closed().await, (1012, text("instance closed")));
    assert_eq!(app.probe.count("left echo"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_leaves_a_socket_open_while_its_instance_works() {
    // H10.5, H10.7: with a deadline until then, without one until the work ends
    let app = App::of::<Room>().await;
    for deadline in [None, Some(secs(30))] {
        app.probe.shut("wait");
        let mut socket = open(&app, "/t/a/echo").await;
        let busy = app.client("/t/a/wait");
        settle().await;
        let worker = app.worker().clone();
        let drained = domain().spawn(async move { worker.drain(deadline).await });
        pass(secs(29)).await;
        socket.say("still").await;
        assert_eq!(socket.text().await, "still");
        // The stats say who holds the drain up.
        let row = app.worker().stats()["instances"][0].clone();
        assert_eq!(
            (&row["id"], &row["connections"], &row["tasks"]),
            (&"a".into(), &1.into(), &1.into())
        );
        if deadline.is_none() {
            app.probe.open("wait");
            busy.answer().await.assert_ok("");
        } else {
            busy.answer().await.assert_aborted();
        }
        assert_eq!(socket.closed().await, (1012, text("instance closed")));
        bounded(drained).await.expect("drained");
        app.worker().revoke_drain();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_vanishes_is_noticed_and_the_idle_clock_starts() {
    let app = App::with::<Room>(short()).await;
    open(&app, "/t/a/echo").await.vanish();
    let connections = || app.worker().stats()["instances"][0]["connections"].clone();
    pass(secs(39)).await;
    assert_eq!(connections(), 1);
    pass(secs(3)).await;
    assert_eq!(connections(), 0);
    assert!(app.probe.has("left echo") && !app.probe.has("teardown"));
    pass(secs(12)).await;
    assert!(app.probe.has("teardown"));
}

#[tokio::test(start_paused = true)]
async fn a_socket_ends_only_after_the_release_and_its_handlers_cleanup() {
    // H6.8, H11.8
    let app = App::placed::<Room>(HostOptions::new()).await;
    let mut socket = open(&app, "/t/a/echo").await;
    app.placements().hold();
    app.host::<Room>().abort("a");
    bounded(app.placements().parked()).await;
    assert!(app.probe.has("teardown"));
    // H6.9: until then it goes on.
    socket.say("still").await;
    assert_eq!(socket.text().await, "still");
    socket.assert_open().await;
    app.placements().release();
    assert_eq!(socket.closed().await, (1012, text("instance closed")));
    assert!(app.probe.has("left echo"));
    assert_eq!(app.placements().released().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_socket_ends_at_the_cap_of_a_release_that_hangs() {
    // H11.7, H11.8
    let app = App::placed::<Room>(HostOptions::new()).await;
    let mut socket = open(&app, "/t/a/echo").await;
    app.placements().hold();
    app.host::<Room>().abort("a");
    let since = domain().monotonic();
    assert_eq!(socket.closed().await.0, 1012);
    assert_eq!((domain().monotonic() - since).as_secs(), 5);
    app.placements().release();
    settle().await;
    assert_eq!(app.placements().released().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_wants_a_turn_of_a_closing_instance_is_cut_off_after_the_release() {
    // H6.8, H11.8
    let app = App::placed::<Room>(HostOptions::new()).await;
    let mut socket = open(&app, "/t/a/turns").await;
    socket.say("one").await;
    assert_eq!(socket.text().await, "done");
    app.placements().hold();
    app.host::<Room>().abort("a");
    bounded(app.placements().parked()).await;
    socket.say("two").await;
    socket.assert_open().await;
    app.placements().release();
    assert_eq!(socket.closed().await, (1012, text("instance closed")));
    assert_eq!(app.probe.count("had a turn"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_escapes_a_handler_closes_with_1013() {
    // H6.7, H6.8
    let app = App::of::<Room>().await;
    let mut greedy = open(&app, "/t/a/greedy").await;
    app.probe.seen("greedy").await;
    let mut late = open(&app, "/t/a/turns").await;
    late.say("one").await;
    assert_eq!(late.closed().await, (1013, text("turn timed out; retry")));
    greedy.assert_open().await;
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_holds_a_turn_does_not_keep_its_instance() {
    // Promise 4: no socket wedges an instance
    let app = App::of::<Room>().await;
    let mut greedy = open(&app, "/t/a/greedy").await;
    app.probe.seen("greedy").await;
    app.host::<Room>().abort("a");
    let since = domain().monotonic();
    assert_eq!(greedy.closed().await.0, 1012);
    app.probe.seen("teardown").await;
    assert_eq!((domain().monotonic() - since).as_secs(), 5);
    app.empty::<Room>().await;
    app.get("/t/a").await.assert_ok("here");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_does_not_keep_its_instance() {
    let app = App::of::<Room>().await;
    let stalled = open(&app, "/t/a/push").await;
    settle().await;
    app.host::<Room>().abort("a");
    app.empty::<Room>().await;
    assert!(app.probe.has("left push"));
    drop(stalled);
}
