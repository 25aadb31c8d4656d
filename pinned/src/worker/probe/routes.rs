//! `/readyz` and `/livez`.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;

use super::{Unready, is_wedged};
use crate::api::refusal::detail_response;
use crate::worker::PinnedWorker;

impl PinnedWorker {
    /// `/readyz` and `/livez`, as [`PinnedWorker::serve`] answers them, for a program that has a server of its own.
    ///
    /// `/readyz` is 200 when the worker [is ready](PinnedWorker::readiness), and otherwise 503 with `{"detail": <why>}`. A worker that
    /// drains is ready as long as it holds a lease: what lives in it is served until it has closed. `/livez` is 503 only while the
    /// worker is wedged, which a restart mends and waiting may not.
    ///
    /// ```
    /// # use pinned::{PinnedWorker, pinned_api};
    /// # #[derive(Default)]
    /// # struct Room;
    /// # #[pinned_api("/rooms")]
    /// # impl Room {}
    /// # let worker = PinnedWorker::builder().host::<Room>("/rooms").build()?;
    /// let app = axum::Router::new().merge(worker.into_router()).merge(worker.probes());
    /// # Ok::<(), pinned::Error>(())
    /// ```
    pub fn probes(&self) -> Router {
        Router::new()
            .route("/readyz", get(readyz))
            .route("/livez", get(livez))
            .with_state(self.clone())
    }
}

async fn readyz(State(worker): State<PinnedWorker>) -> Response {
    answer(worker.readiness().err())
}

async fn livez(State(worker): State<PinnedWorker>) -> Response {
    answer(is_wedged(&worker))
}

fn answer(fault: Option<Unready>) -> Response {
    match fault {
        None => StatusCode::OK.into_response(),
        Some(why) => detail_response(StatusCode::SERVICE_UNAVAILABLE, &why.to_string()),
    }
}
