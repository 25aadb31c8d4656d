//! Streaming bodies (H6.1 to H6.4, H6.9; E14, E21, E33).

mod closing;
mod flow;
mod threads;

use std::convert::Infallible;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use pinned::{Context, HostOptions, Instance, Refusal, lifespan, pinned_api, route};

use crate::observe::Metrics;
use crate::rig::{App, Probe, bounded, domain, millis, pass, secs, settle};

struct Feed {
    probe: Probe,
}

/// Notes its end as `closed`, and panics there if the gate `torn` is open.
struct Producer(Probe);

impl Producer {
    fn new(probe: &Probe) -> Self {
        probe.note("opened");
        Self(probe.clone())
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.0.note("closed");
        if self.0.is_open("torn") {
            panic!("in the cleanup of a producer");
        }
    }
}

#[pinned_api]
impl Feed {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let probe = Probe::clone(&ctx.state().expect("a probe"));
        probe.note("setup");
        Self { probe }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.probe.note("teardown");
    }

    #[route::get("/")]
    async fn read(&mut self) -> &'static str {
        "here"
    }

    #[route::get("/wind-down")]
    async fn wind_down(&self, ctx: Context) {
        ctx.lease().wind_down(None);
    }

    /// Chunks without end, as fast as they are taken.
    #[route::get("/numbers")]
    async fn numbers(&self) -> Response {
        let producer = Producer::new(&self.probe);
        chunks(0_u64, move |n| {
            producer.0.note("made");
            async move { Some((n.to_string(), n + 1)) }
        })
    }

    /// One chunk for each open gate, `1` and so on, and the end at the gate `end`. Begins under the exclusive turn.
    #[route::get("/gated")]
    async fn gated(&mut self) -> Response {
        let producer = Producer::new(&self.probe);
        chunks(1_u64, move |n| {
            let probe = producer.0.clone();
            async move {
                probe.gate(&n.to_string()).await;
                (!probe.is_open("end")).then(|| (n.to_string(), n + 1))
            }
        })
    }

    /// One chunk, and then a panic.
    #[route::get("/panic")]
    async fn panic(&self) -> Response {
        let producer = Producer::new(&self.probe);
        chunks(0_u64, move |n| {
            let _ = &producer;
            async move {
                assert_eq!(n, 0, "with a secret");
                Some((n.to_string(), n + 1))
            }
        })
    }

    /// One chunk, and then an error.
    #[route::get("/error")]
    async fn error(&self) -> Response {
        let _cleanup = self.probe.cleanup("left error");
        let items = [Ok("0"), Err(std::io::Error::other("broken"))];
        Body::from_stream(stream::iter(items)).into_response()
    }

    /// A stream that comes after a wait.
    #[route::get("/late")]
    async fn late(&self) -> Response {
        self.probe.gate("late").await;
        let producer = Producer::new(&self.probe);
        chunks((), move |()| {
            let _ = &producer;
            async { Some((String::new(), ())) }
        })
    }

    /// Takes a turn for each chunk.
    #[route::get("/turns")]
    async fn turns(this: Instance<Self>) -> Response {
        chunks(0_u64, move |n| {
            let this = this.clone();
            async move {
                let turn = this.write().await.ok()?;
                turn.probe.note("had a turn");
                let probe = turn.probe.clone();
                drop(turn);
                probe.gate(&format!("chunk {n}")).await;
                Some((n.to_string(), n + 1))
            }
        })
    }

    /// Holds a turn from its first chunk to its end.
    #[route::get("/greedy")]
    async fn greedy(this: Instance<Self>) -> Result<Response, Refusal> {
        let turn = this.read().await?;
        Ok(chunks(0_u64, move |n| {
            turn.probe.note("made");
            async move { Some((n.to_string(), n + 1)) }
        }))
    }

    #[route::get("/fixed")]
    async fn fixed(&self) -> &'static str {
        "of known length"
    }
}

fn chunks<S, F, Fut>(state: S, step: F) -> Response
where
    S: Send + 'static,
    F: FnMut(S) -> Fut + Send + 'static,
    Fut: Future<Output = Option<(String, S)>> + Send + 'static,
{
    let chunks = stream::unfold((state, step), |(state, mut step)| async move {
        let (chunk, state) = step(state).await?;
        Some((Ok::<_, Infallible>(chunk), (state, step)))
    });
    (StatusCode::OK, Body::from_stream(chunks)).into_response()
}

fn short() -> HostOptions {
    HostOptions::new()
        .idle_timeout(secs(10))
        .sweep_interval(secs(1))
}
