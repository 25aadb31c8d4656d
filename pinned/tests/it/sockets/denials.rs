//! What a socket shows of its authorizer (H2.9 to H2.18).

use super::*;

#[tokio::test(start_paused = true)]
async fn a_socket_that_was_in_its_resolver_when_the_close_began_is_refused() {
    // H5.1, H6.8, H4.4, H2.16
    let app = App::of::<Room>().await;
    for path in ["/t/a/echo?slow", "/t/a/echo?accept&slow"] {
        app.get("/t/a").await.assert_ok("here");
        app.probe.shut("resolver");
        let opening = domain().spawn(app.socket(path));
        settle().await;
        app.host::<Room>().wind_down("a", Some(secs(60)));
        app.empty::<Room>().await;
        app.probe.open("resolver");
        match bounded(opening).await.expect("no panic") {
            Err(refused) => refused.assert_retry("instance closing; retry"),
            Ok(mut accepted) => {
                assert_eq!(accepted.text().await, "last words");
                assert_eq!(
                    accepted.closed().await,
                    (1013, text("instance closing; retry"))
                );
            }
        }
    }
    assert!(!app.probe.has("echo"));
    let told = SocketFailure::Refused {
        message: text("instance closing; retry"),
        retry_after: secs(1),
    };
    assert_eq!(app.probe.count(&format!("{told:?}")), 1);
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_told_as_its_payload_and_1008() {
    // H2.9
    let app = App::of::<Room>().await;
    let mut socket = open(&app, "/t/a/echo?accept&payload").await;
    assert_eq!(socket.text().await, r#"{"n":[1,2],"why":"é"}"#);
    assert_eq!(socket.closed().await, (1008, text("no entry")));
    let mut socket = open(&app, "/t/a/echo?accept&denied").await;
    assert_eq!(socket.closed().await, (1008, text("no entry")));
    let refused = app
        .socket("/t/a/echo?denied")
        .await
        .expect_err("not accepted");
    assert_eq!((refused.status, refused.text.as_str()), (403, ""));
    assert!(
        app.probe.events().is_empty(),
        "neither set up nor told by a hook"
    );
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_cannot_be_sent_is_a_fault() {
    // H2.10, H2.16
    let metrics = Metrics::capture();
    let failures =
        || metrics.value("pinned_request_failures_total{phase=auth,transport=websocket}");
    let app = App::of::<Room>().await;
    let refused = app
        .socket("/t/a/echo?payload")
        .await
        .expect_err("not accepted");
    assert_eq!((refused.status, refused.text.as_str()), (403, ""));
    assert_eq!(failures(), 1.0);
    let mut socket = open(&app, "/t/a/echo?accept&unwritable").await;
    assert_eq!(socket.text().await, "last words");
    assert_eq!(socket.closed().await, (1011, text("authorization failed")));
    assert_eq!(failures(), 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_before_its_denial_is_not_missed() {
    // H2.11
    let metrics = Metrics::capture();
    let logs = crate::observe::Logs::capture();
    let app = App::of::<Room>().await;
    let socket = open(&app, "/t/a/echo?accept&slow&payload").await;
    app.probe.seen("at resolver").await;
    drop(socket);
    app.probe.open("resolver");
    app.empty::<Room>().await;
    assert!(!app.probe.has("setup"));
    assert_eq!(
        metrics.value("pinned_request_failures_total{phase=auth,transport=websocket}"),
        0.0
    );
    logs.assert_none("ERROR");
}

#[tokio::test(start_paused = true)]
async fn an_http_error_of_a_resolver_closes_with_1008() {
    // H2.12
    let app = App::of::<Room>().await;
    let mut socket = open(&app, "/t/a/echo?accept&http").await;
    assert_eq!(socket.closed().await, (1008, text("slow down")));
    let refused = app
        .socket("/t/a/echo?http")
        .await
        .expect_err("not accepted");
    assert_eq!(refused.status, 403);
}

#[tokio::test(start_paused = true)]
async fn a_close_of_a_resolver_keeps_its_code() {
    // H2.13
    let app = App::of::<Room>().await;
    let mut socket = open(&app, "/t/a/echo?accept&close").await;
    assert_eq!(socket.closed().await, (4401, text("sign in")));
    let refused = app
        .socket("/t/a/echo?close")
        .await
        .expect_err("not accepted");
    assert_eq!((refused.status, refused.text.as_str()), (403, ""));
}

#[tokio::test(start_paused = true)]
async fn the_resolver_may_accept_the_socket_that_the_handler_gets() {
    // H2.13
    let app = App::of::<Room>().await;
    let mut socket = open(&app, "/t/a/echo?accept").await;
    socket.say("one").await;
    assert_eq!(socket.text().await, "one");
}

#[tokio::test(start_paused = true)]
async fn any_other_error_of_a_resolver_closes_with_1011_and_tells_nothing() {
    // H2.14, H2.15, H2.16
    let metrics = Metrics::capture();
    let app = App::of::<Room>().await;
    for fault in ["response", "fault", "panic"] {
        let mut socket = open(&app, &format!("/t/a/echo?accept&{fault}")).await;
        assert_eq!(socket.text().await, "last words");
        assert_eq!(socket.closed().await, (1011, text("authorization failed")));
        let refused = app
            .socket(&format!("/t/a/echo?{fault}"))
            .await
            .expect_err("refused");
        assert_eq!((refused.status, refused.text.as_str()), (403, ""));
    }
    let failures = "pinned_request_failures_total{phase=auth,transport=websocket}";
    assert_eq!(metrics.value(failures), 6.0);
    assert!(!app.probe.has("setup"));
    let told = SocketFailure::Failed {
        message: text("authorization failed"),
    };
    assert_eq!(app.probe.count(&format!("{told:?}")), 3);
}

#[tokio::test(start_paused = true)]
async fn an_error_in_a_hook_is_ignored() {
    // H2.16
    let app = App::of::<Room>().await;
    let mut torn = open(&app, "/t/a/echo?accept&torn&fault").await;
    assert_eq!(torn.closed().await, (1011, text("authorization failed")));
    let mut deaf = open(&app, "/t/a/echo?accept&deaf&fault").await;
    assert_eq!(deaf.closed().await, (1011, text("authorization failed")));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_its_resolver_does_not_disturb_another() {
    // E4, H2.18
    let app = App::of::<Room>().await;
    let leaving = domain().spawn(app.socket("/t/a/echo?slow"));
    app.probe.seen("at resolver").await;
    let staying = domain().spawn(app.socket("/t/a/echo?slow"));
    app.probe.seen_times("at resolver", 2).await;
    leaving.abort();
    settle().await;
    assert_eq!(app.host::<Room>().evictions(), 0);
    app.probe.open("resolver");
    let mut socket = bounded(staying).await.expect("no panic").expect("accepted");
    socket.say("one").await;
    assert_eq!(socket.text().await, "one");
    assert_eq!(app.probe.count("setup"), 1);
    assert_eq!(app.host::<Room>().evictions(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_last_client_that_leaves_its_resolver_takes_the_cold_instance_along() {
    // H2.17
    let app = App::of::<Room>().await;
    let leaving = domain().spawn(app.socket("/t/a/echo?slow"));
    app.probe.seen("at resolver").await;
    leaving.abort();
    app.empty::<Room>().await;
    assert_eq!(app.host::<Room>().evictions(), 1);
    assert!(!app.probe.has("setup"));
}
