//! Who may call (H2).
//!
//! An authorizer runs before the setup and has no `self`: it cannot write on the instance, and its order is construct,
//! authorize, setup, handler (H2.6). That it is an async function of the right shape, and that `Auth<T>` names what it
//! returns, are compile errors (H2.3, H2.5; `tests/ui`); so are a status other than 401 or 403 and a message that is no
//! text (H2.7), which the types do not allow. `serde_json` writes NaN and infinities as `null` (H2.9).
//! H2.21 is a matter of threads: the record counts a request from its admission until its work has begun.

mod admitted;
mod denied;
mod discarded;

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
