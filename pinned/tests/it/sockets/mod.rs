//! WebSockets of an instance (H6.5 to H6.8, H6.10; H2.9 to H2.13, H2.15, H2.16; E4, E21).
//!
//! The second half of H6.6, the same error on an HTTP route, has no counterpart: a handler's error there is whatever its
//! type answers. A resolver that raises is one that returns `Denied` here, or panics.

mod closing;
mod denials;
mod sessions;
mod threads;

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

    #[route::get("/wait", auth = none)]
    async fn wait(&self) {
        self.probe.gate("wait").await;
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
