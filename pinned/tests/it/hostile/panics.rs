//! User code that panics where nobody expects it.

use std::pin::Pin;
use std::task::{Context as Poller, Poll};

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::response::Response;
use http::request::Parts;
use http_body::{Frame, SizeHint};
use pinned::{
    BoxError, Context, Instance, InstanceLeaseSettings, RequestState, SetupError, WebSocket,
    lifespan, pinned_api, route,
};

use crate::rig::{App, Probe, bounded, settle};

struct Troubled {
    probe: Probe,
}

/// An error that cannot even say what it is.
#[derive(Debug)]
struct Mute;

impl std::fmt::Display for Mute {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Mute {}

/// Panics when it is dropped.
struct Mine;

impl Drop for Mine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("stepped on");
        }
    }
}

/// An argument that panics.
struct Trap;

impl FromRequestParts<RequestState> for Trap {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(_: &mut Parts, _: &RequestState) -> Result<Self, Self::Rejection> {
        panic!("trapped")
    }
}

/// A body that panics when it is asked for its length.
struct Unmeasured;

impl http_body::Body for Unmeasured {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Poller<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        panic!("too long to measure")
    }
}

#[pinned_api]
impl Troubled {
    #[route::websocket("/mined-socket")]
    async fn mined_socket(this: Instance<Self>, _socket: WebSocket) {
        let probe = this.read().await.expect("a turn").probe.clone();
        let _mine = Mine;
        probe.gate("mined socket").await;
    }

    #[lifespan::setup]
    async fn setup(ctx: Context) -> Result<Self, SetupError> {
        let probe = (*ctx.state::<Probe>().expect("a probe")).clone();
        match ctx.id() {
            "mined" if probe.count("at setup") == 0 => {
                let _mine = Mine;
                probe.gate("setup").await;
            }
            "mute" if probe.count("mute") == 0 => {
                probe.note("mute");
                return Err(SetupError::new(Mute));
            }
            _ => {}
        }
        if ctx.id() == "hooked" {
            let mine = Mine;
            ctx.lease()
                .configure(InstanceLeaseSettings::new().on_idle(move || {
                    let _mine = &mine;
                }))
                .expect("configured");
        }
        Ok(Self { probe })
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) -> Result<(), Mute> {
        if self.probe.is_open("mute teardown") {
            return Err(Mute);
        }
        Ok(())
    }

    #[route::get("/")]
    async fn read(&self) -> &'static str {
        "ok"
    }

    #[route::get("/trap")]
    async fn trap(&self, _trap: Trap) -> &'static str {
        "not trapped"
    }

    #[route::get("/unmeasured")]
    async fn unmeasured(&mut self) -> Response {
        Response::new(Body::new(Unmeasured))
    }

    #[route::get("/mined")]
    async fn mined(&mut self) -> &'static str {
        let _mine = Mine;
        self.probe.gate("mined").await;
        "never"
    }
}

#[tokio::test(start_paused = true)]
async fn an_argument_that_panics_is_answered_500() {
    // H1.12
    let app = App::of::<Troubled>().await;
    let answer = bounded(app.get("/t/a/trap")).await;
    assert_eq!(answer.status, 500);
    bounded(app.get("/t/a")).await.assert_ok("ok");
    app.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_panics_about_its_length_keeps_no_turn() {
    let app = App::of::<Troubled>().await;
    let answer = bounded(app.client("/t/a/unmeasured").answer()).await;
    assert_eq!(answer.status, 500);
    bounded(app.get("/t/a")).await.assert_ok("ok");
    bounded(app.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn a_setup_that_panics_when_it_is_cut_off_does_not_wedge_its_id() {
    // H4.9
    let app = App::of::<Troubled>().await;
    let waiting = app.client("/t/mined");
    app.probe.seen("at setup").await;
    app.host::<Troubled>().abort("mined");
    let answer = bounded(waiting.answer()).await;
    assert!(answer.status >= 500, "{}", answer.status);
    bounded(app.get("/t/mined")).await.assert_ok("ok");
    bounded(app.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn a_setup_error_without_words_does_not_wedge_its_id() {
    // H4.6
    let _logs = pinned_testing::capture_logs();
    let app = App::of::<Troubled>().await;
    assert_eq!(bounded(app.get("/t/mute")).await.status, 500);
    bounded(app.get("/t/mute")).await.assert_ok("ok");
    bounded(app.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn a_teardown_error_without_words_does_not_wedge_its_id() {
    // H11.5
    let _logs = pinned_testing::capture_logs();
    let app = App::of::<Troubled>().await;
    bounded(app.get("/t/a")).await.assert_ok("ok");
    app.probe.open("mute teardown");
    app.host::<Troubled>().abort("a");
    bounded(app.empty::<Troubled>()).await;
    bounded(app.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_when_it_is_cut_off_does_not_wedge_its_id() {
    // H5.3
    let app = App::of::<Troubled>().await;
    let waiting = app.client("/t/a/mined");
    app.probe.seen("at mined").await;
    app.host::<Troubled>().abort("a");
    bounded(waiting.answer()).await.assert_aborted();
    bounded(app.get("/t/a")).await.assert_ok("ok");
    settle().await;
    bounded(app.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn a_socket_whose_handler_panics_when_it_is_cut_off_is_closed_in_order() {
    // H6.8
    let app = App::of::<Troubled>().await;
    let mut socket = bounded(app.socket("/t/a/mined-socket"))
        .await
        .unwrap_or_else(|_| panic!("accepted"));
    app.probe.seen("at mined socket").await;
    app.host::<Troubled>().abort("a");
    assert_eq!(bounded(socket.closed()).await.0, 1012);
    bounded(app.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_when_it_is_dropped_holds_nobody_up() {
    let app = App::of::<Troubled>().await;
    bounded(app.get("/t/hooked")).await.assert_ok("ok");
    app.host::<Troubled>().abort("hooked");
    // Waits for the close.
    bounded(app.get("/t/hooked")).await.assert_ok("ok");
    bounded(app.shutdown()).await;
}
