//! Calls between instances: within one worker through the target's whole route stack, without leaving the process
//! (W14.5); to others through the control plane (W14.2).

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::header::{HOST, HeaderName};
use http::{HeaderMap, Request};

use crate::Attestation;
use crate::api::chain::Origin;
use crate::api::cluster::{ClusterError, MAX_CALL_DEPTH};
use crate::api::refusal::internal_error;
use crate::api::request::RequestBody;
use crate::api::scope::{carry, current_depth};
use crate::api::seam::{Seam, boxed};
use crate::domain::{TaskError, TaskHandle};
#[cfg(feature = "fleet")]
use crate::fleet::remote::Remote;
use crate::host::core::Host;
use crate::host::env::CallTransport;
use crate::host::head::Sender;
use crate::host::hosts::Hosts;

/// A call runs on its caller's stack, which costs no task. Every so many calls of a chain go to a task of their own,
/// so that a chain of any allowed depth fits the stack of a thread.
const CALLS_PER_STACK: u32 = 4;

/// Finds targets among the hosts of this worker.
pub(crate) struct LocalTransport {
    hosts: Weak<Hosts>,
    /// The way to other workers, where there are any.
    #[cfg(feature = "fleet")]
    remote: Option<Arc<Remote>>,
}

impl LocalTransport {
    pub(crate) fn new(hosts: &Arc<Hosts>) -> Self {
        Self {
            hosts: Arc::downgrade(hosts),
            #[cfg(feature = "fleet")]
            remote: None,
        }
    }

    /// As [`new`](Self::new), with a way to other workers.
    #[cfg(feature = "fleet")]
    pub(crate) fn with_remote(mut self, remote: Option<Remote>) -> Self {
        self.remote = remote.map(Arc::new);
        self
    }

    /// The way to other workers.
    #[cfg(feature = "fleet")]
    fn remote(&self) -> Option<Arc<Remote>> {
        self.remote.clone()
    }
}

impl CallTransport for LocalTransport {
    fn call(
        &self,
        caller: Seam,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response, ClusterError>> {
        let hosts = self.hosts.upgrade();
        #[cfg(feature = "fleet")]
        let remote = self.remote();
        boxed(async move {
            let depth = current_depth().saturating_add(1);
            if depth > MAX_CALL_DEPTH {
                tracing::error!(
                    target: "pinned::fleet",
                    instance_id = caller.id(),
                    namespace = caller.namespace(),
                    "a chain of cluster calls is deeper than {MAX_CALL_DEPTH}"
                );
                return Err(ClusterError::DepthExceeded);
            }
            let path = request.uri().path().to_owned();
            let found = hosts.as_ref().and_then(|hosts| hosts.find(&path));
            let mut request = request;
            drop_private(request.headers_mut());
            #[cfg(feature = "fleet")]
            if let Some(remote) = remote {
                // With a control plane only what lives here is local: a call never activates anything by choice.
                let here = found
                    .as_ref()
                    .is_some_and(|(host, target)| host.has(&path[target.id.clone()]));
                if !here {
                    let caller = format!("{}/{}", caller.namespace(), caller.id());
                    let answer = remote.send(&caller, depth, request).await?;
                    return Ok(without_private(answer));
                }
            }
            let Some((host, target)) = found else {
                return Err(ClusterError::UnknownTarget(path));
            };
            let host: Arc<Host> = Arc::clone(host);
            let request = request.map(RequestBody::Body);
            // The caller waits for as long as this is held.
            let (origin, _waiting) = Origin::call(depth);
            let sender = Sender::Inside {
                attestation: Attestation::Instance {
                    ns: caller.namespace().to_owned(),
                    id: caller.id().to_owned(),
                    depth: u64::from(depth),
                },
                origin,
            };
            let dispatch = async move { host.dispatch(target, request, sender).await };
            if !depth.is_multiple_of(CALLS_PER_STACK) {
                return Ok(without_private(dispatch.await));
            }
            let task = AbortOnDrop(caller.domain().spawn(carry(dispatch)));
            let answer = task.await.unwrap_or_else(|_crashed| internal_error());
            Ok(without_private(answer))
        })
    }
}

/// A task that goes with whoever waits for it.
struct AbortOnDrop(TaskHandle<Response>);

impl Future for AbortOnDrop {
    type Output = Result<Response, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a caller may not say of itself (W14.4).
fn drop_private(headers: &mut HeaderMap) {
    drop_control_planes(headers);
    headers.remove(HOST);
}

/// What the one who was called may not say either, as pinboard has it for those elsewhere (P5.5).
fn without_private(mut answer: Response) -> Response {
    drop_control_planes(answer.headers_mut());
    answer
}

/// Drops what is between workers and the control plane, with either of the signs that some servers take for one another.
fn drop_control_planes(headers: &mut HeaderMap) {
    let is_private = |name: &HeaderName| {
        let rest = name.as_str().strip_prefix("pinboard");
        rest.is_some_and(|rest| rest.starts_with(['-', '_']))
    };
    if !headers.keys().any(is_private) {
        return;
    }
    let private: Vec<_> = headers
        .keys()
        .filter(|name| is_private(name))
        .cloned()
        .collect();
    for name in private {
        headers.remove(name);
    }
}
