//! Requests to a worker, from whichever server.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use http::{Request, Uri};
use hyper::body::Incoming;
use tower::ServiceExt;
use tower::util::Oneshot;
use tower_service::Service;

use super::PinnedWorker;
use crate::api::refusal::not_found;
use crate::api::request::RequestBody;
use crate::host::dispatch::Dispatch;
use crate::host::head::Sender;
use crate::host::hosts::Hosts;

/// The namespaces behind an `axum::Router`.
#[derive(Clone)]
pub(super) struct HostsService {
    hosts: Arc<Hosts>,
}

impl HostsService {
    pub(super) fn new(hosts: &Arc<Hosts>) -> Self {
        Self {
            hosts: Arc::clone(hosts),
        }
    }
}

impl Service<Request<Body>> for HostsService {
    type Response = Response;
    type Error = Infallible;
    type Future = WorkerAnswer;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self.hosts.find(request.uri().path()) {
            Some((host, target)) => {
                let request = request.map(RequestBody::Body);
                WorkerAnswer::Host(host.dispatch(target, request, Sender::Outside))
            }
            None => WorkerAnswer::NotFound,
        }
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

    /// The worker beside a server of the program's own, which answers what is not here.
    pub(super) fn beside(worker: &PinnedWorker) -> Self {
        Self {
            hosts: Arc::clone(&worker.core.hosts),
            side: worker.probes(),
        }
    }

    fn answer(&self, request: Request<RequestBody>) -> WorkerAnswer {
        match self.hosts.find(request.uri().path()) {
            Some((host, target)) => {
                WorkerAnswer::Host(host.dispatch(target, request, Sender::Outside))
            }
            None => {
                let side = self
                    .side
                    .clone()
                    .oneshot(request.map(RequestBody::into_body));
                WorkerAnswer::Side(Box::pin(side))
            }
        }
    }

    /// Ends when a request of the worker's own has been answered, whatever the answer is.
    pub(super) fn ask_itself(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut request = Request::new(RequestBody::Body(Body::empty()));
        *request.uri_mut() = Uri::from_static("/livez");
        let answer = self.answer(request);
        async move {
            let Ok(_answer) = answer.await;
        }
    }
}

/// The answer to a request.
pub(super) enum WorkerAnswer {
    Host(Dispatch),
    NotFound,
    Side(Pin<Box<Oneshot<axum::Router, Request<Body>>>>),
}

impl Future for WorkerAnswer {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Host(dispatch) => Pin::new(dispatch).poll(cx).map(Ok),
            Self::NotFound => Poll::Ready(Ok(not_found())),
            Self::Side(side) => side.as_mut().poll(cx),
        }
    }
}

impl hyper::service::Service<Request<Incoming>> for WorkerService {
    type Response = Response;
    type Error = Infallible;
    type Future = WorkerAnswer;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.answer(request.map(RequestBody::Incoming))
    }
}
