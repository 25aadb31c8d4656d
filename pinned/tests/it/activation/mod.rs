//! Activation (H4).
//!
//! H4.5 has no counterpart: setup returns the instance and teardown is a function of its own, so that neither can yield
//! twice. Trays (H4.1) come with their crate module. The type errors of H4.3 are compile errors here; its range is tested in
//! `configuration`.

mod failure;
mod life;
mod queue;
mod threads;

use axum::extract::Path;
use pinned::ws::{SocketError, WebSocket, WebSocketUpgrade};
use pinned::{
    Connection, Context, Denied, HostOptions, Refusal, SetupError, SocketFailure, Unavailable,
    lifespan, pinned_api, route,
};

use crate::observe::Metrics;
use crate::rig::{App, Probe, bounded, millis, pass, secs, settle};

struct Archive {
    probe: Probe,
    ctx: Context,
}

fn probe(ctx: &Context) -> Probe {
    Probe::clone(&ctx.state().expect("a probe"))
}

#[pinned_api]
impl Archive {
    /// What it does is in the id: `slow-x` waits at its gate, `bad` fails, `torn` panics, `moved` is an HTTP error.
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Result<Self, SetupError> {
        let (probe, id) = (probe(&ctx), ctx.id().to_owned());
        probe.note(format!("setup {id}"));
        if id.starts_with("slow") {
            let _cleanup = probe.cleanup(format!("left {id}"));
            probe.gate(&id).await;
        }
        if id.starts_with("eager") {
            ctx.lease().wind_down(None);
            ctx.lease().wind_down(Some(secs(60)));
        }
        if ctx.lease().winding_down() {
            probe.note(format!("winding down {id}"));
        }
        if !probe.is_open("healed") {
            match id.as_str() {
                "bad" | "slow-bad" => return Err(SetupError::new("with a secret")),
                "torn" => panic!("with a secret"),
                "moved" => return Err(SetupError::http(410, "moved")),
                _ => {}
            }
        }
        Ok(Self { probe, ctx })
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        let id = self.ctx.id();
        self.probe.note(format!("teardown {id}"));
        self.ctx.lease().wind_down(None);
        self.ctx.abort();
        if id.starts_with("heavy") {
            self.probe.gate(id).await;
        }
        self.probe.note(format!("gone {id}"));
    }

    #[authorize]
    async fn authorize(ctx: &Context, conn: &Connection) -> Result<(), Denied> {
        let probe = probe(ctx);
        conn.on_socket_failure(move |failure| {
            probe.note(format!("{failure:?}"));
            match failure {
                SocketFailure::Failed { message } => Some(format!("failed: {message}")),
                SocketFailure::Refused { message, .. } => Some(format!("refused: {message}")),
                _ => None,
            }
        });
        if conn.uri().query() == Some("accept") {
            conn.accept().await?;
        }
        Ok(())
    }

    #[route::get("/")]
    async fn read(&self) -> String {
        self.ctx.id().to_owned()
    }

    #[route::get("/wait/{gate}")]
    async fn wait(&self, Path(gate): Path<String>) {
        self.probe.gate(&gate).await;
    }

    #[route::get("/ask/{other}", auth = none)]
    async fn ask(&self, Path(other): Path<String>) -> String {
        let asked = self.ctx.cluster().get(format!("/t/{other}/")).send().await;
        asked.expect("an answer").text().await.expect("text")
    }

    #[route::websocket("/socket")]
    async fn socket(this: pinned::Instance<Self>, socket: WebSocket) -> Result<(), SocketError> {
        socket.send_text(this.id()).await
    }

    #[route::websocket("/upgrade")]
    async fn upgrade(_this: pinned::Instance<Self>, upgrade: WebSocketUpgrade) {
        drop(upgrade);
    }
}
