//! WebSockets of an instance (H6.5 to H6.8, H6.10; H2.9 to H2.13, H2.15, H2.16; E4, E21).
//!
//! The second half of H6.6, the same error on an HTTP route, has no counterpart: a handler's error there is whatever its
//! type answers. A resolver that raises is one that returns `Denied` here, or panics.

use axum::http::StatusCode;
use pinned::ws::{Message, SocketError, WebSocket, WebSocketUpgrade, close_code};
use pinned::{
    AuthRejected, BoxError, Connection, Context, Denied, HostOptions, Instance, SocketFailure,
    lifespan, pinned_api, route,
};

use crate::observe::Metrics;
use crate::rig::{App, Probe, Socket, bounded, domain, millis, pass, secs, settle};

struct Room {
    probe: Probe,
}

fn probe(ctx: &Context) -> Probe {
    Probe::clone(&ctx.state().expect("a probe"))
}

/// What a payload is that does not serialize: a map with keys that are no text.
fn unwritable() -> std::collections::BTreeMap<Vec<u8>, ()> {
    [(vec![1], ())].into()
}

#[pinned_api]
impl Room {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let probe = probe(&ctx);
        probe.note("setup");
        Self { probe }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.probe.note("teardown");
    }

    /// What it does is in the query: `accept`, `slow`, and how it denies.
    #[authorize]
    async fn authorize(ctx: &Context, conn: &Connection) -> Result<(), Denied> {
        let probe = probe(ctx);
        let query = conn.uri().query().unwrap_or_default().to_owned();
        let asks = |what: &str| query.split('&').any(|part| part == what);
        if !asks("deaf") {
            let probe = probe.clone();
            let torn = asks("torn");
            conn.on_socket_failure(move |failure| {
                probe.note(format!("{failure:?}"));
                assert!(!torn, "in a hook");
                Some("last words".to_owned())
            });
        }
        if asks("accept") {
            conn.accept().await?;
        }
        if asks("slow") {
            probe.gate("resolver").await;
        }
        let payload = serde_json::json!({ "why": "é", "n": [1, 2] });
        let no = AuthRejected::new("no entry");
        if asks("denied") {
            return Err(no.into());
        }
        if asks("payload") {
            return Err(no.payload(payload).into());
        }
        if asks("unwritable") {
            return Err(no.payload(unwritable()).into());
        }
        if asks("long") {
            return Err(AuthRejected::new("é".repeat(100)).into());
        }
        if asks("http") {
            return Err(Denied::http(StatusCode::TOO_MANY_REQUESTS, "slow down"));
        }
        if asks("close") {
            return Err(Denied::close(4401, "sign in"));
        }
        if asks("response") {
            return Err(Denied::response("not a socket"));
        }
        if asks("fault") {
            return Err(Denied::fault("with a secret"));
        }
        assert!(!asks("panic"), "with a secret");
        Ok(())
    }

    #[route::get("/", auth = none)]
    async fn read(&self) -> &'static str {
        "here"
    }

    #[route::get("/wind-down", auth = none)]
    async fn wind_down(&self, ctx: Context) {
        ctx.lease().wind_down(None);
    }

    /// Echoes, until the client leaves.
    #[route::websocket("/echo")]
    async fn echo(this: Instance<Self>, mut socket: WebSocket) -> Result<(), SocketError> {
        let probe = probe(&this.context());
        probe.note("echo");
        let _cleanup = probe.cleanup("left echo");
        while let Some(message) = socket.recv().await {
            if let Message::Text(text) = message? {
                if text.as_str() == "end" {
                    return Ok(());
                }
                socket.send_text(text).await?;
            }
        }
        probe.note("hung up");
        Ok(())
    }

    /// Sends until that fails.
    #[route::websocket("/push")]
    async fn push(this: Instance<Self>, socket: WebSocket) -> Result<(), BoxError> {
        let probe = probe(&this.context());
        let _cleanup = probe.cleanup("left push");
        loop {
            socket.send_text("x".repeat(1_000)).await?;
        }
    }

    #[route::websocket("/fail")]
    async fn fail(
        _this: Instance<Self>,
        ctx: Context,
        upgrade: WebSocketUpgrade,
    ) -> Result<(), BoxError> {
        let probe = probe(&ctx);
        if probe.is_open("accept") {
            let socket = upgrade.accept().await?;
            socket.send_text("hello").await?;
        }
        if probe.is_open("panic") {
            panic!("with a secret");
        }
        Err("with a secret".into())
    }

    #[route::websocket("/refuse")]
    async fn refuse(_this: Instance<Self>, upgrade: WebSocketUpgrade) {
        upgrade.refuse((StatusCode::IM_A_TEAPOT, "no sockets"));
    }

    #[route::websocket("/drop")]
    async fn drop_it(_this: Instance<Self>, upgrade: WebSocketUpgrade) {
        drop(upgrade);
    }

    /// Closes twice, and sends into its own close.
    #[route::websocket("/close")]
    async fn close(this: Instance<Self>, socket: WebSocket) -> Result<(), SocketError> {
        let probe = probe(&this.context());
        let reason = "é".repeat(100);
        socket
            .close(Some(pinned::ws::CloseFrame::new(4000, reason)))
            .await?;
        let sent = socket.send_text("too late").await;
        probe.note(format!("{sent:?}"));
        probe.note(format!("{:?}", socket.close(None).await));
        Ok(())
    }

    /// Wants a turn for each message.
    #[route::websocket("/turns")]
    async fn turns(this: Instance<Self>, mut socket: WebSocket) -> Result<(), BoxError> {
        while let Some(message) = socket.recv().await {
            message?;
            let room = this.write().await?;
            room.probe.note("had a turn");
            drop(room);
            socket.send_text("done").await?;
        }
        Ok(())
    }

    /// Holds a turn for its whole life.
    #[route::websocket("/greedy")]
    async fn greedy(this: Instance<Self>, mut socket: WebSocket) -> Result<(), BoxError> {
        let room = this.write().await?;
        room.probe.note("greedy");
        while let Some(message) = socket.recv().await {
            message?;
        }
        Ok(())
    }
}

fn short() -> HostOptions {
    HostOptions::new()
        .idle_timeout(secs(10))
        .sweep_interval(secs(1))
}

async fn open(app: &App, path: &str) -> Socket {
    app.socket(path).await.expect("accepted")
}

fn text(reason: &str) -> String {
    reason.to_owned()
}

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
    let refused = app.socket("/t/a/fail").await.err().expect("not accepted");
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
    let refused = app.socket("/t/a/fail").await.err().expect("not accepted");
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
    let refused = app.socket("/t/a/refuse").await.err().expect("not accepted");
    assert_eq!((refused.status, refused.text.as_str()), (418, "no sockets"));
    let dropped = app.socket("/t/a/drop").await.err().expect("not accepted");
    assert_eq!((dropped.status, dropped.text.as_str()), (403, ""));
    let mut accepted = open(&app, "/t/a/refuse?accept").await;
    assert_eq!(accepted.closed().await.0, 1008);
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
        .err()
        .expect("not accepted");
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
        .err()
        .expect("not accepted");
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
        .err()
        .expect("not accepted");
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
        .err()
        .expect("not accepted");
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
            .err()
            .expect("refused");
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

#[tokio::test(start_paused = true)]
async fn a_refused_admission_is_answered_instead_of_the_upgrade() {
    // H3.12
    let app = App::with::<Room>(HostOptions::new().max_instances(1)).await;
    let _socket = open(&app, "/t/a/echo").await;
    let refused = app.socket("/t/b/echo").await.err().expect("not accepted");
    refused.assert_retry("instance capacity reached; retry");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_sockets_that_end_in_every_way_leave_nothing_open() {
    // Promise 4
    let options = HostOptions::new()
        .idle_timeout(millis(20))
        .sweep_interval(millis(5));
    let app = std::sync::Arc::new(App::with::<Room>(options).await);
    let callers: Vec<_> = (0..6_u64)
        .map(|seed| {
            let app = std::sync::Arc::clone(&app);
            domain().spawn(async move {
                let rng = pinned::domain::Domain::real_seeded(seed)
                    .rng("sockets")
                    .expect("a label");
                for _ in 0..40 {
                    let path = match rng.u64() % 5 {
                        0 => "/t/a/push",
                        1 => "/t/a/echo?accept&denied",
                        2 => "/t/a/turns",
                        _ => "/t/a/echo",
                    };
                    let mut socket = match app.socket(path).await {
                        Ok(socket) => socket,
                        Err(refused) => {
                            assert!(matches!(refused.status, 403 | 503), "{refused:?}");
                            continue;
                        }
                    };
                    match rng.u64() % 4 {
                        0 => app.host::<Room>().abort("a"),
                        1 => socket.provoke().await,
                        2 => tokio::task::yield_now().await,
                        _ => {}
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        let done = domain().timeout(secs(60), caller).await;
        done.expect("nobody waits for ever").expect("no panic");
    }
    let empty = domain().timeout(secs(30), app.empty::<Room>()).await;
    empty.expect("no count was leaked");
}
