//! Requests to a worker, from whichever server.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use tower_service::Service;

use super::PinnedWorker;
use super::router::unnest;
use crate::api::call::RequestBody;
use crate::api::refusal::not_found;
use crate::host::core::Host;
use crate::host::dispatch::Sender;
use crate::routing::{Hosts, below};

/// One host behind an `axum::Router`.
#[derive(Clone)]
pub(super) struct HostService {
    host: Arc<Host>,
}

impl HostService {
    pub(super) fn new(host: Arc<Host>) -> Self {
        Self { host }
    }
}

impl Service<Request<Body>> for HostService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let host = Arc::clone(&self.host);
        Box::pin(async move {
            let Some((request, namespace_end)) = unnest(request) else {
                return Ok(not_found());
            };
            let target = below(request.uri().path(), namespace_end);
            let request = request.map(RequestBody::Body);
            Ok(host.dispatch(target, request, Sender::Outside).await)
        })
    }
}

/// The worker straight behind hyper: the namespaces first, everything else through a router.
#[derive(Clone)]
pub(super) struct WorkerService {
    hosts: Arc<Hosts>,
    side: axum::Router,
}

impl WorkerService {
    pub(super) fn new(worker: &PinnedWorker) -> Self {
        Self {
            hosts: Arc::clone(&worker.core.hosts),
            side: worker.side_router(),
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response, Infallible> {
        if let Some((host, target)) = self.hosts.find(request.uri().path()) {
            let request = request.map(RequestBody::Incoming);
            return Ok(host.dispatch(target, request, Sender::Outside).await);
        }
        let mut side = self.side;
        side.call(request.map(Body::new)).await
    }
}

impl hyper::service::Service<Request<Incoming>> for WorkerService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}
