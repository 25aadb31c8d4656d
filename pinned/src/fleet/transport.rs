//! How a worker reaches the registry.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;

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
