//! A worker that something holds: the program of `tests/it/shutdown.rs`.

use std::convert::Infallible;
use std::future::{pending, ready};

use axum::body::Body;
use futures_util::stream::{self, StreamExt};
use pinned::{Context, PinnedWorker, pinned_api, route};

#[derive(Default)]
struct Held;

#[pinned_api("/held")]
impl Held {
    /// A stream that never ends by itself.
    #[route::get("/stream")]
    async fn stream(&self) -> Body {
        let first = stream::once(ready(Ok::<_, Infallible>("open")));
        Body::from_stream(first.chain(stream::pending()))
    }

    /// A task that never ends by itself.
    #[route::get("/task")]
    async fn task(&self, ctx: Context) {
        ctx.spawn(pending::<()>());
    }
}

#[tokio::main]
async fn main() -> pinned::Result<()> {
    PinnedWorker::from_registry()?.serve().await
}
