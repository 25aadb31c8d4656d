//! An answer to a call.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::error::ClusterError;
use crate::domain::{Domain, saturating_add};

/// Until when a call may take.
pub(super) struct Deadline {
    domain: Domain,
    at: Instant,
    timeout: Duration,
}

impl Deadline {
    pub(super) fn new(domain: Domain, timeout: Duration) -> Self {
        Self {
            at: saturating_add(domain.monotonic(), timeout),
            domain,
            timeout,
        }
    }

    /// Gives `work` up at the deadline.
    pub(super) async fn bound<T>(&self, work: impl Future<Output = T>) -> Result<T, ClusterError> {
        let left = self.at.saturating_duration_since(self.domain.monotonic());
        self.domain
            .timeout(left, work)
            .await
            .map_err(|_elapsed| ClusterError::TimedOut(self.timeout))
    }
}

/// An instance's answer to a call.
pub struct ClusterResponse {
    response: Response,
    deadline: Option<Deadline>,
}

impl ClusterResponse {
    pub(super) fn new(response: Response, deadline: Option<Deadline>) -> Self {
        Self { response, deadline }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The whole body.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Body`] when it breaks off, [`ClusterError::TimedOut`] when it takes longer than the call may.
    pub async fn bytes(self) -> Result<Bytes, ClusterError> {
        let collecting = self.response.into_body().collect();
        let body = match &self.deadline {
            None => collecting.await,
            Some(deadline) => deadline.bound(collecting).await?,
        };
        body.map(|body| body.to_bytes())
            .map_err(|error| ClusterError::Body(error.into()))
    }

    /// The whole body as text.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes); [`ClusterError::Body`] when it is not UTF-8.
    pub async fn text(self) -> Result<String, ClusterError> {
        let bytes = self.bytes().await?;
        String::from_utf8(bytes.into()).map_err(|error| ClusterError::Body(error.into()))
    }

    /// The whole body as JSON.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes); [`ClusterError::Body`] when it is not a `T`.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, ClusterError> {
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| ClusterError::Body(error.into()))
    }

    /// The body as it comes in, for streams. The call's timeout does not bound it.
    pub fn into_body(self) -> Body {
        self.response.into_body()
    }
}

impl fmt::Debug for ClusterResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterResponse")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
