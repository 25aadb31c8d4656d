//! The worker as an `axum::Router`, and the routes beside the namespaces.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::routing::get;
use http::{Request, StatusCode};

use super::service::HostService;
use super::{PinnedWorker, stats};
use crate::api::refusal::not_found;

impl PinnedWorker {
    /// The worker as a router, to merge into a program that has a server of its own. Run
    /// [`PinnedWorker::run_lifespan`] beside it; until then every request is answered 503.
    ///
    /// It serves the namespaces and `/_pinned/stats`, with the behaviour of [`PinnedWorker::serve`].
    ///
    /// ```no_run
    /// # use pinned::PinnedWorker;
    /// # async fn demo(worker: PinnedWorker) -> Result<(), Box<dyn std::error::Error>> {
    /// let app = axum::Router::new().merge(worker.into_router());
    /// let running = worker.run_lifespan().await?;
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
    /// axum::serve(listener, app).await?;
    /// running.shutdown().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[allow(
        clippy::wrong_self_convention,
        reason = "the worker is a handle; the name is that of its promise"
    )]
    pub fn into_router(&self) -> Router {
        let mut router = Router::new().route("/_pinned/stats", get(stats::stats));
        for host in self.each_host() {
            router = router.nest_service(&host.namespace, HostService::new(Arc::clone(host)));
        }
        router.with_state(self.clone())
    }

    /// What `serve` answers beside the namespaces.
    pub(super) fn side_router(&self) -> Router {
        let router = Router::new()
            .route("/readyz", get(readyz))
            .route("/livez", get(|| async { StatusCode::OK }))
            .route("/_pinned/stats", get(stats::stats));
        #[cfg(feature = "metrics")]
        let router = match &self.core.metrics {
            Some(exporter) => router.merge(exporter.router()),
            None => router,
        };
        let router = router.with_state(self.clone());
        match self.core.extra.clone() {
            Some(extra) => router.merge(extra),
            None => router.fallback(|| async { not_found() }),
        }
    }
}

async fn readyz(State(worker): State<PinnedWorker>) -> StatusCode {
    if worker.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

/// Undoes what nesting did to a request: its target as it was sent, and where the namespace ends in it.
pub(super) fn unnest(mut request: Request<Body>) -> Option<(Request<Body>, usize)> {
    let below = request.uri().path().len();
    if let Some(OriginalUri(original)) = request.extensions().get::<OriginalUri>().cloned() {
        let mut namespace_end = original.path().len().checked_sub(below)?;
        // Of two slashes, before an empty id, nesting takes one along; a namespace never ends in one (H1.3).
        if original.path()[..namespace_end].ends_with('/') {
            namespace_end -= 1;
        }
        if !original.path()[namespace_end..].starts_with('/') {
            return None;
        }
        *request.uri_mut() = original;
        return Some((request, namespace_end));
    }
    Some((request, 0))
}
