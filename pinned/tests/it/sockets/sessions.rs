//! Handlers and their sockets (H6.6, H6.7, H6.10).

use super::*;

#[tokio::test(start_paused = true)]
async fn a_session_is_activity_at_its_end_and_not_at_each_frame() {
    // H5.6, H5.8, E33
    let app = App::with::<Room>(short()).await;
    let mut socket = open(&app, "/t/a/echo").await;
    for _ in 0..3 {
        pass(secs(8)).await;
        socket.say("x").await;
        assert_eq!(socket.text().await, "x");
        let idle = app.worker().stats()["instances"][0]["idleMs"].as_u64();
        assert!(idle.expect("a number") >= 8_000, "{idle:?}");
    }
    socket.say("end").await;
    assert_eq!(socket.closed().await.0, 1000);
    pass(secs(8)).await;
    assert!(!app.probe.has("teardown"));
    app.empty::<Room>().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_returns_closes_with_1000() {
    let app = App::of::<Room>().await;
    let mut socket = open(&app, "/t/a/echo").await;
    socket.say("end").await;
    assert_eq!(socket.closed().await, (close_code::NORMAL, String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_its_socket_quietly() {
    // H6.6
    let logs = crate::observe::Logs::capture();
    let app = App::with::<Room>(short()).await;
    for path in ["/t/a/echo", "/t/a/push"] {
        let socket = open(&app, path).await;
        settle().await;
        drop(socket);
    }
    app.probe.seen("left echo").await;
    app.probe.seen("left push").await;
    app.empty::<Room>().await;
    logs.assert_none("ERROR");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_closes_with_1011_and_tells_nothing() {
    // H6.7
    let app = App::of::<Room>().await;
    let refused = app.socket("/t/a/fail").await.expect_err("not accepted");
    assert_eq!(
        (refused.status, refused.text.as_str()),
        (500, "Internal Server Error")
    );
    app.probe.open("accept");
    let mut socket = open(&app, "/t/a/fail").await;
    assert_eq!(socket.text().await, "hello");
    assert_eq!(socket.closed().await, (1011, text("internal error")));
    assert_eq!(app.probe.count("setup"), 1, "an error is no panic");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_closes_with_1011_and_aborts_its_instance() {
    // H6.7
    let app = App::of::<Room>().await;
    app.probe.open("panic");
    let refused = app.socket("/t/a/fail").await.expect_err("not accepted");
    assert_eq!(
        (refused.status, refused.text.as_str()),
        (500, "Internal Server Error")
    );
    app.empty::<Room>().await;
    app.probe.open("accept");
    let mut socket = open(&app, "/t/a/fail").await;
    assert_eq!(socket.text().await, "hello");
    assert_eq!(socket.closed().await, (1011, text("internal error")));
    app.empty::<Room>().await;
    assert_eq!(app.probe.count("setup"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_may_be_refused_or_left_alone() {
    let app = App::of::<Room>().await;
    let refused = app.socket("/t/a/refuse").await.expect_err("not accepted");
    assert_eq!((refused.status, refused.text.as_str()), (418, "no sockets"));
    let dropped = app.socket("/t/a/drop").await.expect_err("not accepted");
    assert_eq!((dropped.status, dropped.text.as_str()), (403, ""));
    let mut accepted = open(&app, "/t/a/refuse?accept").await;
    assert_eq!(accepted.closed().await.0, 1008);
}

#[tokio::test(start_paused = true)]
async fn a_reason_is_cut_at_the_end_of_a_character() {
    // H6.10
    let app = App::of::<Room>().await;
    let mut socket = open(&app, "/t/a/echo?accept&long").await;
    assert_eq!(socket.closed().await, (1008, "é".repeat(61)));
    let mut socket = open(&app, "/t/a/close").await;
    assert_eq!(socket.closed().await, (4000, "é".repeat(61)));
}

#[tokio::test(start_paused = true)]
async fn sending_into_its_own_close_is_an_error_and_closing_again_does_nothing() {
    let app = App::of::<Room>().await;
    let mut socket = open(&app, "/t/a/close").await;
    assert_eq!(socket.closed().await.0, 4000);
    app.probe.seen("Ok(())").await;
    assert!(app.probe.has("Err(Closed)"));
    assert_eq!(app.probe.count("setup"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_admission_is_answered_instead_of_the_upgrade() {
    // H3.12
    let app = App::with::<Room>(HostOptions::new().max_instances(1)).await;
    let _socket = open(&app, "/t/a/echo").await;
    let refused = app.socket("/t/b/echo").await.expect_err("not accepted");
    refused.assert_retry("instance capacity reached; retry");
}
