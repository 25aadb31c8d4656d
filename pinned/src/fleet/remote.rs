//! Calls to instances elsewhere, through the control plane (W14.6).

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::HOST;
use http::{HeaderValue, Request};
use pinned_wire::headers::{CHAIN, FROM, SESSION, SESSION_SECRET, SUBREQUEST_DEPTH};

use super::registration::Registration;
use super::transport::DataPlane;
use crate::api::chain::OpenCalls;
use crate::api::cluster::ClusterError;

/// Carries calls to the control plane, which finds the instance.
pub(crate) struct Remote {
    plane: Arc<dyn DataPlane>,
    /// What the worker is routed by, in hostname-aware mode.
    host: Option<HeaderValue>,
    /// What the worker proves itself by; `None` when no header can carry it.
    secret: Option<HeaderValue>,
    registration: Arc<Registration>,
    calls: Arc<OpenCalls>,
}

impl Remote {
    pub(crate) fn new(
        plane: Arc<dyn DataPlane>,
        hostname: Option<&str>,
        registration: Arc<Registration>,
        calls: Arc<OpenCalls>,
    ) -> Self {
        let mut secret = HeaderValue::try_from(registration.secret().expose()).ok();
        if let Some(secret) = &mut secret {
            secret.set_sensitive(true);
        }
        Self {
            plane,
            secret,
            host: hostname.and_then(|hostname| HeaderValue::try_from(hostname).ok()),
            registration,
            calls,
        }
    }

    /// Sends `request`, whose private headers have been dropped, in the name of `<ns>/<id>` and of the chain that runs here
    /// and now. No retry: a refusal is an answer.
    pub(crate) async fn send(
        &self,
        caller: &str,
        depth: u32,
        mut request: Request<Body>,
    ) -> Result<Response, ClusterError> {
        let session = self
            .registration
            .session_id()
            .ok_or(ClusterError::NoSession)?;
        let secret = self.secret.clone().ok_or_else(|| {
            ClusterError::InvalidRequest("the worker's secret cannot stand in a header".into())
        })?;
        let invalid =
            |_| ClusterError::InvalidRequest("the caller has no name for a header".into());
        let headers = request.headers_mut();
        headers.insert(FROM, HeaderValue::try_from(caller).map_err(invalid)?);
        headers.insert(SESSION, HeaderValue::try_from(&*session).map_err(invalid)?);
        headers.insert(SESSION_SECRET, secret);
        headers.insert(SUBREQUEST_DEPTH, depth.into());
        if let Some(host) = &self.host {
            headers.insert(HOST, host.clone());
        }
        // The caller waits for as long as this is held.
        let _open = match OpenCalls::open(&self.calls) {
            Some((chain, open)) => {
                headers.insert(CHAIN, HeaderValue::try_from(chain).map_err(invalid)?);
                Some(open)
            }
            None => None,
        };
        self.plane
            .call(request)
            .await
            .map_err(ClusterError::Unreachable)
    }
}
