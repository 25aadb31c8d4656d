//! A drain and a shutdown while a client is stuck in each phase of its request.

use axum::extract::FromRequestParts;
use http::request::Parts;
use pinned::ws::WebSocketUpgrade;
use pinned::{
    Connection, Context, Denied, Instance, RequestState, WebSocket, lifespan, pinned_api, route,
};

use crate::rig::{App, Probe, bounded, secs, settle};

struct Stuck {
    probe: Probe,
}

fn probe(ctx: &Context) -> Probe {
    (*ctx.state::<Probe>().expect("a probe")).clone()
}

/// Stays at `place`, and notes when it is let go of.
async fn stay(probe: &Probe, place: &str) {
    let _left = probe.cleanup(format!("left {place}"));
    probe.gate(place).await;
}

/// An argument that is never had.
struct Never;

impl FromRequestParts<RequestState> for Never {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        _: &mut Parts,
        state: &RequestState,
    ) -> Result<Self, Self::Rejection> {
        stay(&probe(state.context()), "argument").await;
        Ok(Self)
    }
}

#[pinned_api]
impl Stuck {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let probe = probe(&ctx);
        if ctx.id() == "setup" {
            stay(&probe, "setup").await;
        }
        Self { probe }
    }

    async fn halts(ctx: &Context, conn: &Connection) -> Result<(), Denied> {
        Self::accepts(ctx, conn).await?;
        stay(&probe(ctx), "authorizer").await;
        Ok(())
    }

    async fn accepts(_: &Context, conn: &Connection) -> Result<(), Denied> {
        conn.accept().await.map_err(Denied::fault)
    }

    #[route::get("/")]
    async fn read(&self) -> &'static str {
        "ok"
    }

    #[route::get("/handler")]
    async fn handler(&mut self) -> &'static str {
        stay(&self.probe, "handler").await;
        "never"
    }

    #[route::get("/turn")]
    async fn turn(this: Instance<Self>) -> &'static str {
        let held = this.write().await.expect("a turn");
        stay(&held.probe, "turn").await;
        "never"
    }

    #[route::websocket("/authorizer", auth = Self::halts)]
    async fn guarded(_this: Instance<Self>, _socket: WebSocket) {}

    #[route::websocket("/argument", auth = Self::accepts)]
    async fn argued(_this: Instance<Self>, _never: Never, _socket: WebSocket) {}

    #[route::websocket("/upgrade")]
    async fn upgrade(this: Instance<Self>, _upgrade: WebSocketUpgrade) {
        let probe = probe(&this.context());
        stay(&probe, "upgrade").await;
    }

    #[route::websocket("/open")]
    async fn open(this: Instance<Self>, _socket: WebSocket) {
        let probe = probe(&this.context());
        stay(&probe, "open").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_whatever_is_stuck_in_a_request() {
    // H10.7, H11.3
    for (id, path, place) in [
        ("/t/setup", "/t/setup", "setup"),
        ("/t/a", "/t/a/handler", "handler"),
        ("/t/a", "/t/a/turn", "turn"),
    ] {
        let app = App::of::<Stuck>().await;
        let stuck = app.client(path);
        app.probe.seen(&format!("at {place}")).await;
        // One behind it, in the queue.
        let behind = app.client(id);
        settle().await;
        bounded(app.worker().drain(Some(secs(1)))).await;
        assert!(app.probe.has(&format!("left {place}")), "{place}");
        assert_eq!(bounded(stuck.answer()).await.status, 503, "{place}");
        assert_eq!(bounded(behind.answer()).await.status, 503, "{place}");
        app.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_whatever_is_stuck_around_a_socket() {
    // H6.8, H11.3
    for (place, expected) in [("open", 1012), ("authorizer", 1013), ("argument", 1013)] {
        let app = App::of::<Stuck>().await;
        let mut socket = bounded(app.socket(&format!("/t/a/{place}")))
            .await
            .expect("accepted");
        app.probe.seen(&format!("at {place}")).await;
        bounded(app.worker().drain(Some(secs(1)))).await;
        let (code, _) = bounded(socket.closed()).await;
        assert_eq!(code, expected, "{place}");
        settle().await;
        assert!(app.probe.has(&format!("left {place}")), "{place}");
        app.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_an_upgrade_that_nobody_answers() {
    let app = App::of::<Stuck>().await;
    let opening = crate::rig::domain().spawn(app.socket("/t/a/upgrade"));
    app.probe.seen("at upgrade").await;
    bounded(app.worker().drain(Some(secs(1)))).await;
    let answer = bounded(opening).await.expect("no panic");
    assert_eq!(answer.map(drop).expect_err("refused").status, 503);
    assert!(app.probe.has("left upgrade"));
    app.shutdown().await;
}
