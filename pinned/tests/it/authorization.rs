//! Who may call (H2).
//!
//! An authorizer runs before the setup and has no `self`: it cannot write on the instance, and its order is construct,
//! authorize, setup, handler (H2.6). That it is an async function of the right shape, and that `Auth<T>` names what it
//! returns, are compile errors (H2.3, H2.5; `tests/ui`); so are a status other than 401 or 403 and a message that is no
//! text (H2.7), which the types do not allow. `serde_json` writes NaN and infinities as `null` (H2.9).
//! H2.21 is a matter of threads: the record counts a request from its admission until its work has begun.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::FromRequestParts;
use axum::response::IntoResponse;
use http::request::Parts;
use http::{StatusCode, header};
use pinned::{
    Attestation, Auth, AuthRejected, Connection, Context, Denied, HostOptions, Instance,
    PinnedHost, PinnedWorker, RequestState, WebSocket, lifespan, pinned_api, route,
};
use serde_json::json;

use crate::app::{App, Board, Call, Gate, closed_with, frame, settle, spawn};

/// What the test tells the authorizer, by the header `x-ask`.
struct Door {
    gates: [Gate; 3],
    setup: Option<Gate>,
    asked: AtomicUsize,
    handled: AtomicUsize,
}

struct Vault;

struct Visitor(String);

fn word<'a>(conn: &'a Connection, name: &str) -> &'a str {
    conn.headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[pinned_api]
impl Vault {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        if let Some(gate) = &ctx.state::<Arc<Door>>().unwrap().setup {
            gate.pass().await;
        }
        Self
    }

    #[authorize]
    async fn authorize(ctx: &Context, conn: &Connection) -> Result<Visitor, Denied> {
        let door = ctx.state::<Arc<Door>>().unwrap();
        door.asked.fetch_add(1, Ordering::SeqCst);
        if conn.headers().contains_key("x-accept") {
            conn.accept().await?;
        }
        if word(conn, "x-accept") == "with-hook" {
            conn.on_socket_failure(|failure| Some(format!("{failure:?}")));
        }
        if word(conn, "x-accept") == "with-panicking-hook" {
            conn.on_socket_failure(|_| panic!("a hook"));
        }
        if let Ok(gate) = word(conn, "x-gate").parse::<usize>() {
            door.gates[gate].pass().await;
        }
        let rejected = AuthRejected::new("sign in");
        match word(conn, "x-ask") {
            "deny" => Err(rejected.into()),
            "forbid" => Err(rejected.forbidden().code("no-entry").into()),
            "payload" => Err(rejected.payload(json!({ "why": "é", "until": 1 })).into()),
            "unserializable" => Err(rejected.payload(HashMap::from([([1_u8], 2)])).into()),
            "long" => Err(AuthRejected::new("é".repeat(100)).into()),
            "http" => Err(Denied::http(StatusCode::TOO_MANY_REQUESTS, "slow down")),
            "close" => Err(Denied::close(4401, "who are you?")),
            "redirect" => Err(Denied::response(
                (StatusCode::SEE_OTHER, [(header::LOCATION, "/sign-in")]).into_response(),
            )),
            "fail" => Err(Denied::fault("the user database says: hunter2")),
            "panic" => panic!("hunter2"),
            _ => Ok(Visitor(ctx.id().to_owned())),
        }
    }

    async fn badge(_ctx: &Context, conn: &Connection) -> Result<u64, AuthRejected> {
        match word(conn, "x-badge").parse() {
            Ok(badge) => Ok(badge),
            Err(_) => Err(AuthRejected::new("no badge")),
        }
    }

    #[route::get("/")]
    async fn open(&self, ctx: Context, visitor: Auth<Visitor>) -> String {
        ctx.state::<Arc<Door>>()
            .unwrap()
            .handled
            .fetch_add(1, Ordering::SeqCst);
        format!("{} in", visitor.0.0)
    }

    #[route::get("/badge", auth = Self::badge)]
    async fn by_badge(&self, badge: Auth<u64>) -> String {
        badge.to_string()
    }

    #[route::get("/public", auth = none)]
    async fn public(&self) -> &'static str {
        "public"
    }

    #[route::get("/guarded")]
    async fn guarded(&self, _guard: Guard) -> &'static str {
        "guarded"
    }

    #[route::get("/caller", auth = none)]
    async fn caller(&self, caller: Attestation) -> String {
        format!("{caller:?}")
    }

    #[route::websocket("/chat")]
    async fn chat(this: Instance<Self>, visitor: Auth<Visitor>, socket: WebSocket) {
        this.context()
            .state::<Arc<Door>>()
            .unwrap()
            .handled
            .fetch_add(1, Ordering::SeqCst);
        let _ = socket.send_text(visitor.0.0.clone()).await;
    }
}

/// A guard of one route: an extractor that looks at what the authorizer returned.
struct Guard;

impl FromRequestParts<RequestState> for Guard {
    type Rejection = StatusCode;

    async fn from_request_parts(_: &mut Parts, state: &RequestState) -> Result<Self, StatusCode> {
        match state.auth::<Visitor>() {
            Some(visitor) if visitor.0 == "ada" => Ok(Self),
            _ => Err(StatusCode::PAYMENT_REQUIRED),
        }
    }
}

struct Place {
    app: App,
    host: PinnedHost<Vault>,
    door: Arc<Door>,
    board: Board,
}

fn door(setup: Option<Gate>) -> Arc<Door> {
    Arc::new(Door {
        gates: [Gate::closed(), Gate::closed(), Gate::closed()],
        setup,
        asked: AtomicUsize::new(0),
        handled: AtomicUsize::new(0),
    })
}

async fn place(options: HostOptions, door: Arc<Door>, placed: bool) -> Place {
    let board = Board::default();
    let builder = PinnedWorker::builder()
        .host_with::<Vault>(options.namespace("/vaults"))
        .state(Arc::clone(&door));
    let builder = if placed {
        builder.placements(Arc::new(board.clone()))
    } else {
        builder
    };
    let app = App::start(builder).await;
    let host: PinnedHost<Vault> = app.worker.hosted().expect("mounted");
    Place {
        app,
        host,
        door,
        board,
    }
}

async fn local() -> Place {
    place(HostOptions::new(), door(None), false).await
}

async fn placed() -> Place {
    place(HostOptions::new(), door(None), true).await
}

impl Place {
    fn ask(&self, path: &str, what: &str) -> Call {
        self.app.get(path).attested().header("x-ask", what)
    }

    fn passes(&self, gate: usize, what: &str) -> Call {
        self.ask("/vaults/ada", what)
            .header("x-gate", gate.to_string())
    }

    /// Records, activations, evictions.
    fn counts(&self) -> (usize, u64, u64) {
        (
            self.host.len(),
            self.host.activations(),
            self.host.evictions(),
        )
    }

    fn handled(&self) -> usize {
        self.door.handled.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn a_registered_worker_needs_an_attestation() {
    // H2.1, H2.2, E30
    let place = placed().await;
    for n in 0..20 {
        let reply = place
            .app
            .get(&format!("/vaults/id-{n}/public"))
            .send()
            .await;
        assert_eq!(
            (reply.status.as_u16(), &*reply.body),
            (403, r#"{"detail":"invalid attestation"}"#)
        );
        let secret = place.app.worker.secret();
        let reply = place
            .app
            .get(&format!("/vaults/id-{n}"))
            .header("pinboard-proxy-secret", secret)
            .send()
            .await;
        reply.assert_error(403, "invalid attestation");
        let socket = place.app.get(&format!("/vaults/id-{n}/chat"));
        socket
            .refused_socket()
            .await
            .assert_closed_before_acceptance();
    }
    for token in ["", "x", "a.b.c", "\u{e9}"] {
        let reply = place
            .app
            .get("/vaults/ada")
            .header("pinboard-attestation", token)
            .send()
            .await;
        reply.assert_error(403, "invalid attestation");
    }
    let mut claims = place.app.claims();
    claims.aud = "session-0".to_owned();
    let stale = pinned::wire::attestation::mint(place.app.worker.secret(), &claims);
    let reply = place
        .app
        .get("/vaults/ada")
        .header("pinboard-attestation", stale)
        .send()
        .await;
    reply.assert_error(403, "invalid attestation");
    assert_eq!(place.counts(), (0, 0, 0));
    assert_eq!(place.door.asked.load(Ordering::SeqCst), 0);
    place
        .app
        .get("/vaults/ada")
        .attested()
        .send()
        .await
        .assert_ok("ada in");
}

#[tokio::test(start_paused = true)]
async fn in_local_mode_everybody_passes_as_anonymous() {
    // H2.1
    let place = local().await;
    place
        .app
        .get("/vaults/ada/caller")
        .send()
        .await
        .assert_ok("Anonymous");
    // Nobody outside knows the secret, and no other header makes anybody known.
    let forged = place
        .app
        .get("/vaults/ada/caller")
        .header("pinboard-attestation", "a.b.c");
    forged
        .header("pinboard-caller", "/vaults/eve")
        .send()
        .await
        .assert_ok("Anonymous");
}

#[tokio::test(start_paused = true)]
async fn a_verified_caller_reaches_the_handler() {
    // H2.1
    let place = placed().await;
    let claims = place.app.claims().with_caller("/rooms/lobby", 3);
    let token = pinned::wire::attestation::mint(place.app.worker.secret(), &claims);
    let call = place
        .app
        .get("/vaults/ada/caller")
        .header("pinboard-attestation", token);
    call.send()
        .await
        .assert_ok(r#"Instance { ns: "/rooms", id: "lobby", depth: 3 }"#);
}

#[tokio::test(start_paused = true)]
async fn each_route_has_its_own_authorizer() {
    // H2.3, H2.5
    let place = local().await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    assert_eq!(place.door.asked.load(Ordering::SeqCst), 1);
    // Another one: the default is not asked.
    place
        .ask("/vaults/ada/badge", "deny")
        .header("x-badge", "7")
        .send()
        .await
        .assert_ok("7");
    let reply = place.ask("/vaults/ada/badge", "").send().await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (401, json!({ "message": "no badge" }))
    );
    // None at all.
    place
        .ask("/vaults/ada/public", "deny")
        .send()
        .await
        .assert_ok("public");
    assert_eq!(place.door.asked.load(Ordering::SeqCst), 1);
}

#[derive(Default)]
struct Plain;

#[pinned_api]
impl Plain {
    #[route::get("/")]
    async fn open(&self) -> &'static str {
        "open"
    }

    #[route::get("/guarded")]
    async fn guarded(&self, _guard: Guard) -> &'static str {
        "guarded"
    }
}

#[tokio::test(start_paused = true)]
async fn a_struct_without_an_authorizer_admits_everybody_as_nobody() {
    // H2.4, H2.5
    let app = App::start(PinnedWorker::builder().host::<Plain>("/plains")).await;
    app.get("/plains/a").send().await.assert_ok("open");
    assert_eq!(
        app.get("/plains/a/guarded").send().await.status,
        StatusCode::PAYMENT_REQUIRED
    );
}

#[tokio::test(start_paused = true)]
async fn a_guard_of_one_route_sees_what_the_authorizer_returned() {
    // H2.5; a guard is an extractor, and as such comes before the activation.
    let place = local().await;
    place
        .app
        .get("/vaults/ada/guarded")
        .send()
        .await
        .assert_ok("guarded");
    let reply = place.app.get("/vaults/bob/guarded").send().await;
    assert_eq!(reply.status, StatusCode::PAYMENT_REQUIRED);
    assert_eq!(place.door.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn the_authorizer_runs_before_the_setup() {
    // H2.6
    let place = place(HostOptions::new(), door(Some(Gate::closed())), false).await;
    let call = place.passes(0, "").begin().await;
    place.door.gates[0].reached(1).await;
    assert_eq!(place.counts(), (1, 0, 0));
    place.door.gates[0].open();
    let setup = place.door.setup.as_ref().unwrap();
    setup.reached(1).await;
    assert_eq!(place.handled(), 0);
    setup.open();
    call.await.unwrap().assert_ok("ada in");
}

#[tokio::test(start_paused = true)]
async fn a_denial_says_what_it_was_given_to_say() {
    // H2.7, H2.8
    let metrics = crate::app::Metrics::here();
    let place = local().await;
    let reply = place.ask("/vaults/ada", "deny").send().await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (401, r#"{"message":"sign in"}"#)
    );
    let reply = place.ask("/vaults/ada", "forbid").send().await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (403, r#"{"message":"sign in"}"#)
    );
    let reply = place.ask("/vaults/ada", "payload").send().await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (401, json!({ "why": "\u{e9}", "until": 1 }))
    );
    assert_eq!(reply.header("content-type"), Some("application/json"));
    // Deliberate: no failure.
    assert_eq!(metrics.count("pinned_request_failures_total", &[]), 0);

    let reply = place.ask("/vaults/ada", "unserializable").send().await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (500, "Internal Server Error")
    );
    let labels = [("phase", "auth"), ("transport", "http")];
    assert_eq!(metrics.count("pinned_request_failures_total", &labels), 1);
    assert_eq!(AuthRejected::new("m").code("c").code_str(), Some("c"));
}

#[tokio::test(start_paused = true)]
async fn a_payload_keeps_the_order_of_its_members() {
    // H2.8
    #[derive(serde::Serialize)]
    struct Why {
        zeta: u8,
        alpha: u8,
    }
    struct Ordered;
    #[pinned_api]
    impl Ordered {
        #[lifespan::setup]
        async fn setup(_ctx: Context) -> Self {
            Self
        }
        #[authorize]
        async fn authorize(_ctx: &Context, _conn: &Connection) -> Result<(), AuthRejected> {
            Err(AuthRejected::new("no").payload(Why { zeta: 1, alpha: 2 }))
        }
        #[route::get("/")]
        async fn open(&self) {}
    }
    let app = App::start(PinnedWorker::builder().host::<Ordered>("/ordered")).await;
    assert_eq!(
        app.get("/ordered/a").send().await.body,
        r#"{"zeta":1,"alpha":2}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_denied_socket_is_closed_with_the_message() {
    // H2.9
    let place = local().await;
    place
        .ask("/vaults/ada/chat", "deny")
        .refused_socket()
        .await
        .assert_closed_before_acceptance();

    let mut socket = place
        .ask("/vaults/ada/chat", "deny")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(closed_with(&mut socket).await, (1008, "sign in".to_owned()));

    let mut socket = place
        .ask("/vaults/ada/chat", "payload")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    let payload = frame(&mut socket).await;
    assert!(
        payload.contains('\u{e9}') && !payload.contains(' '),
        "{payload}"
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&payload).unwrap(),
        json!({ "why": "\u{e9}", "until": 1 })
    );
    assert_eq!(closed_with(&mut socket).await, (1008, "sign in".to_owned()));
    assert_eq!(place.handled(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_long_denial_is_cut_on_a_character_boundary() {
    // H6.10; the reason of a close frame has at most 123 bytes.
    let place = local().await;
    let mut socket = place
        .ask("/vaults/ada/chat", "long")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(closed_with(&mut socket).await, (1008, "\u{e9}".repeat(61)));
    let reply = place.ask("/vaults/ada", "long").send().await;
    assert_eq!(reply.json(), json!({ "message": "\u{e9}".repeat(100) }));
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_cannot_be_sent_is_a_failure() {
    // H2.10
    let metrics = crate::app::Metrics::here();
    let place = local().await;
    place
        .ask("/vaults/ada/chat", "payload")
        .refused_socket()
        .await
        .assert_closed_before_acceptance();
    let mut socket = place
        .ask("/vaults/ada/chat", "unserializable")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (1011, "authorization failed".to_owned())
    );
    let labels = [("phase", "auth"), ("transport", "websocket")];
    assert_eq!(metrics.count("pinned_request_failures_total", &labels), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_before_its_payload_ends_quietly() {
    // H2.11
    let metrics = crate::app::Metrics::here();
    let place = local().await;
    let call = place.passes(0, "payload").header("x-accept", "1");
    drop(call.path("/vaults/ada/chat").connect().await.unwrap());
    place.door.gates[0].open();
    settle().await;
    assert_eq!(metrics.count("pinned_request_failures_total", &[]), 0);
    assert_eq!((place.handled(), place.counts()), (0, (0, 0, 1)));
}

#[tokio::test(start_paused = true)]
async fn an_http_error_of_the_authorizer_passes_through() {
    // H2.12
    let metrics = crate::app::Metrics::here();
    let place = local().await;
    let reply = place.ask("/vaults/ada", "http").send().await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (429, r#"{"detail":"slow down"}"#)
    );
    let mut socket = place
        .ask("/vaults/ada/chat", "http")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (1008, "slow down".to_owned())
    );
    assert_eq!(metrics.count("pinned_request_failures_total", &[]), 0);
}

#[tokio::test(start_paused = true)]
async fn a_close_of_the_authorizer_keeps_its_code_and_reason() {
    // H2.13
    let place = local().await;
    place
        .ask("/vaults/ada/chat", "close")
        .refused_socket()
        .await
        .assert_closed_before_acceptance();
    let mut socket = place
        .ask("/vaults/ada/chat", "close")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (4401, "who are you?".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_whole_response_answers_the_request() {
    // H2.14
    let metrics = crate::app::Metrics::here();
    let place = local().await;
    let reply = place.ask("/vaults/ada", "redirect").send().await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("location")),
        (303, Some("/sign-in"))
    );
    settle().await;
    assert_eq!((place.handled(), place.counts()), (0, (0, 0, 1)));
    // A warm instance stays.
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    assert_eq!(
        place.ask("/vaults/ada", "redirect").send().await.status,
        StatusCode::SEE_OTHER
    );
    settle().await;
    assert_eq!(place.counts(), (1, 1, 1));
    assert_eq!(metrics.count("pinned_request_failures_total", &[]), 0);

    let mut socket = place
        .ask("/vaults/ada/chat", "redirect")
        .header("x-accept", "1")
        .connect()
        .await
        .unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (1011, "authorization failed".to_owned())
    );
    let labels = [("phase", "auth"), ("transport", "websocket")];
    assert_eq!(metrics.count("pinned_request_failures_total", &labels), 1);
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_authorizer_leaks_nothing_and_promises_nothing() {
    // H2.15, H3.13
    let metrics = crate::app::Metrics::here();
    let place = local().await;
    for what in ["fail", "panic", "close"] {
        let reply = place.ask("/vaults/ada", what).send().await;
        assert_eq!(
            (reply.status.as_u16(), &*reply.body),
            (503, r#"{"detail":"authorization failed"}"#)
        );
        assert_eq!(reply.header("retry-after"), None);
    }
    let labels = [("phase", "auth"), ("transport", "http")];
    assert_eq!(metrics.count("pinned_request_failures_total", &labels), 3);
    for what in ["fail", "panic"] {
        let mut socket = place
            .ask("/vaults/ada/chat", what)
            .header("x-accept", "1")
            .connect()
            .await
            .unwrap();
        assert_eq!(
            closed_with(&mut socket).await,
            (1011, "authorization failed".to_owned())
        );
        place
            .ask("/vaults/ada/chat", what)
            .refused_socket()
            .await
            .assert_closed_before_acceptance();
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_has_the_last_word_on_an_accepted_socket() {
    // H2.16
    let place = local().await;
    let call = place
        .ask("/vaults/ada/chat", "fail")
        .header("x-accept", "with-hook");
    let mut socket = call.connect().await.unwrap();
    assert_eq!(
        frame(&mut socket).await,
        format!("{:?}", failed("authorization failed"))
    );
    assert_eq!(
        closed_with(&mut socket).await,
        (1011, "authorization failed".to_owned())
    );

    let call = place
        .ask("/vaults/ada/chat", "fail")
        .header("x-accept", "with-panicking-hook");
    let mut socket = call.connect().await.unwrap();
    assert_eq!(
        closed_with(&mut socket).await,
        (1011, "authorization failed".to_owned())
    );
    // A deliberate denial is no failure.
    let call = place
        .ask("/vaults/ada/chat", "deny")
        .header("x-accept", "with-hook");
    let mut socket = call.connect().await.unwrap();
    assert_eq!(closed_with(&mut socket).await, (1008, "sign in".to_owned()));
}

fn failed(message: &str) -> impl std::fmt::Debug + use<> {
    #[derive(Debug)]
    #[expect(dead_code, reason = "read through its Debug alone")]
    struct Failed {
        message: String,
    }
    Failed {
        message: message.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_met_on_an_accepted_socket_is_told_to_its_hook() {
    // H2.16, H4.4: the instance closes while the client is being authorized.
    let place = local().await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    let call = place
        .passes(0, "")
        .header("x-accept", "with-hook")
        .path("/vaults/ada/chat");
    let mut socket = call.connect().await.unwrap();
    place.host.abort("ada");
    place.door.gates[0].open();
    let words = frame(&mut socket).await;
    assert_eq!(
        words,
        r#"Refused { message: "instance closing; retry", retry_after: 1s }"#
    );
    assert_eq!(
        closed_with(&mut socket).await,
        (1013, "instance closing; retry".to_owned())
    );
    assert_eq!(place.handled(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cold_denial_leaves_nothing_behind() {
    // H2.17, H2.19, H2.20
    let place = placed().await;
    for what in ["deny", "fail", "http", "redirect", "panic"] {
        place.ask("/vaults/ada", what).send().await;
        settle().await;
        assert_eq!(place.host.len(), 0, "{what}");
    }
    assert_eq!(place.counts(), (0, 0, 5));
    assert_eq!(place.board.released().len(), 5);
    // The epoch of a discarded placement is spent; a warm instance is never discarded.
    place.ask("/vaults/bob", "deny").epoch(3).send().await;
    settle().await;
    let again = place.ask("/vaults/bob", "").epoch(3).send().await;
    again.assert_refused("released placement epoch; retry");
    place
        .ask("/vaults/bob", "")
        .epoch(4)
        .send()
        .await
        .assert_ok("bob in");
    place.ask("/vaults/bob", "deny").epoch(4).send().await;
    settle().await;
    assert_eq!(place.host.len(), 1);
    assert_eq!(
        place.board.released().last(),
        Some(&("/vaults/bob".to_owned(), Some(3)))
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_during_a_discard_is_told_to_come_back() {
    // H2.20
    let place = placed().await;
    let gate = Gate::closed();
    place.board.hold(&gate);
    place.ask("/vaults/ada", "deny").send().await;
    gate.reached(1).await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_refused("instance closing; retry");
    gate.open();
    settle().await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
}

#[tokio::test(start_paused = true)]
async fn a_denial_leaves_the_instance_to_whoever_is_still_being_authorized() {
    // H2.18, E1
    let place = local().await;
    let other = place.passes(0, "").begin().await;
    place.door.gates[0].reached(1).await;
    assert_eq!(
        place.ask("/vaults/ada", "deny").send().await.status,
        StatusCode::UNAUTHORIZED
    );
    settle().await;
    assert_eq!(place.counts(), (1, 0, 0));
    place.door.gates[0].open();
    other.await.unwrap().assert_ok("ada in");
    assert_eq!(place.counts(), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_last_of_two_denials_discards() {
    // H2.18, E2
    let place = local().await;
    let first = place.passes(0, "deny").begin().await;
    let last = place.passes(1, "deny").begin().await;
    place.door.gates[0].open();
    assert_eq!(first.await.unwrap().status, StatusCode::UNAUTHORIZED);
    settle().await;
    assert_eq!(place.counts(), (1, 0, 0));
    place.door.gates[1].open();
    assert_eq!(last.await.unwrap().status, StatusCode::UNAUTHORIZED);
    settle().await;
    assert_eq!(place.counts(), (0, 0, 1));
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    assert_eq!(place.counts(), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_last_discards_as_well() {
    // H2.17, H2.18, E3
    let place = local().await;
    let first = place.passes(0, "deny").begin().await;
    let last = place.passes(1, "").begin().await;
    place.door.gates[0].open();
    first.await.unwrap();
    last.abort();
    settle().await;
    assert_eq!((place.handled(), place.counts()), (0, (0, 0, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_socket_client_who_leaves_while_another_is_authorized_changes_nothing() {
    // H2.18, E4
    let place = local().await;
    let chat = "/vaults/ada/chat";
    let leaver = spawn(place.passes(0, "").path(chat).connect());
    let stayer = spawn(place.passes(1, "").path(chat).connect());
    place.door.gates[1].reached(1).await;
    leaver.abort();
    settle().await;
    assert_eq!(place.counts(), (1, 0, 0));
    place.door.gates[1].open();
    let mut socket = stayer.await.unwrap().expect("accepted");
    assert_eq!(frame(&mut socket).await, "ada");
    assert_eq!((place.handled(), place.counts()), (1, (1, 1, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_denial_does_not_touch_an_activation_under_way() {
    // H2.17, E5
    let place = place(HostOptions::new(), door(Some(Gate::closed())), true).await;
    let served = place.ask("/vaults/ada", "").begin().await;
    place.door.setup.as_ref().unwrap().reached(1).await;
    assert_eq!(
        place.ask("/vaults/ada", "deny").send().await.status,
        StatusCode::UNAUTHORIZED
    );
    settle().await;
    place.door.setup.as_ref().unwrap().open();
    served.await.unwrap().assert_ok("ada in");
    assert_eq!(place.counts(), (1, 1, 0));
    assert!(place.board.released().is_empty());
}

#[tokio::test(start_paused = true)]
async fn denied_ids_do_not_starve_an_allowed_one() {
    // H2.19, E6
    let place = place(HostOptions::new().max_instances(1), door(None), false).await;
    for n in 0..10 {
        let reply = place.ask(&format!("/vaults/id-{n}"), "deny").send().await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
        settle().await;
    }
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    assert_eq!(place.counts(), (1, 1, 10));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_being_authorized_when_the_close_begins_does_not_run() {
    // H5.1
    let place = placed().await;
    place
        .ask("/vaults/ada", "")
        .send()
        .await
        .assert_ok("ada in");
    let call = place.passes(0, "").begin().await;
    place.host.wind_down("ada", Some(std::time::Duration::ZERO));
    place.door.gates[0].open();
    call.await
        .unwrap()
        .assert_refused("instance closing; retry");
    assert_eq!(place.handled(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn denials_and_admissions_from_many_threads_never_tear_an_instance() {
    // H2.17, H2.18, H2.21: whoever is admitted is served or told to come back, and what is left at the end is what
    // the counts say.
    let place = Arc::new(placed().await);
    let clients: Vec<_> = (0..64)
        .map(|n| {
            let place = Arc::clone(&place);
            spawn(async move {
                for round in 0..20 {
                    let what = if (n + round) % 2 == 0 { "deny" } else { "" };
                    let reply = place
                        .ask(&format!("/vaults/id-{}", round % 4), what)
                        .send()
                        .await;
                    let status = reply.status.as_u16();
                    assert!(
                        matches!(status, 200 | 401 | 503),
                        "{status}: {}",
                        reply.body
                    );
                    if status == 503 {
                        reply.assert_refused("instance closing; retry");
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    place.app.worker.abort_all();
    place.app.worker.drain(None).await;
    assert_eq!(place.host.len(), 0);
    assert_eq!(place.host.evictions(), place.board.released().len() as u64);
}
