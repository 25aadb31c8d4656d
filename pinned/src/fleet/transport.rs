//! How a worker reaches the control plane: its registry, and through it other workers.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, StatusCode};

use crate::error::BoxError;

/// Carries the calls of a worker to the registry: one `POST` each, with the worker's token.
///
/// The seam through which a test stands in for a control plane.
pub trait ControlPlane: Send + Sync + 'static {
    /// Sends `body`, which is JSON, to `path`.
    ///
    /// # Errors
    ///
    /// No answer came. The call may have taken effect.
    fn post(
        &self,
        path: &'static str,
        body: Vec<u8>,
    ) -> BoxFuture<'static, Result<ControlAnswer, BoxError>>;
}

/// What the registry answered.
#[derive(Clone, Debug)]
pub struct ControlAnswer {
    /// The status.
    pub status: StatusCode,
    /// `Retry-After`, as it was sent.
    pub retry_after: Option<String>,
    /// The body.
    pub body: Bytes,
}

/// Carries calls of a worker's instances to the control plane, which takes them to where their targets live.
///
/// The seam through which a test stands in for a control plane.
pub trait DataPlane: Send + Sync + 'static {
    /// Sends `request`, whose URI is a path and perhaps a query, and gives the answer of whatever status. That of an
    /// upgrade has what it becomes in its extensions (`hyper::upgrade::OnUpgrade`).
    ///
    /// # Errors
    ///
    /// No answer came. The call may have run.
    fn call(&self, request: Request<Body>) -> BoxFuture<'static, Result<Response, BoxError>>;
}
