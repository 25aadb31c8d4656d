//! The worker as an `axum::Router`, and the routes beside the namespaces.

use axum::Router;
use axum::routing::get;

use super::fleet::challenge_route;
use super::service::HostsService;
use super::{PinnedWorker, stats};
use crate::api::refusal::not_found;

impl PinnedWorker {
    /// The worker as a router, to merge into a program that has a server of its own. Run
    /// [`PinnedWorker::run_lifespan`] beside it; until then every request is answered 503.
    ///
    /// It serves the namespaces and `/_pinned/stats`, with the behaviour of [`PinnedWorker::serve`]; probes are answered by
    /// [`PinnedWorker::probes`].
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
        let mut router = challenge_route(Router::new()).route("/_pinned/stats", get(stats::stats));
        for host in self.each_host() {
            let service = HostsService::new(&self.core.hosts);
            let namespace = &host.namespace;
            // Not nested, which would take the target apart and put it together again for every request; the service
            // finds its way from the whole path. The second one is for an empty id (H1.3).
            router = router
                .route_service(&format!("{namespace}/{{*pinned_path}}"), service.clone())
                .route_service(&format!("{namespace}/"), service);
        }
        router.with_state(self.clone())
    }

    /// What `serve` answers beside the namespaces.
    pub(super) fn side_router(&self) -> Router {
        let router = challenge_route(Router::new()).route("/_pinned/stats", get(stats::stats));
        #[cfg(feature = "metrics")]
        let router = match &self.core.metrics {
            Some(exporter) => router.merge(exporter.router()),
            None => router,
        };
        let router = router.with_state(self.clone()).merge(self.probes());
        match self.core.extra.clone() {
            Some(extra) => router.merge(extra),
            None => router.fallback(|| async { not_found() }),
        }
    }
}
