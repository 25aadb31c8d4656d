//! Why a call did not come to an answer.

use std::fmt;
use std::time::Duration;

use axum::body::Bytes;
use http::{HeaderMap, StatusCode};

use super::MAX_CALL_DEPTH;
use crate::error::BoxError;

/// Why a call to another instance did not come to an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The path, a header, the query or the body is not one. Nothing was sent.
    #[error("invalid cluster request: {0}")]
    InvalidRequest(String),
    /// The chain of calls is [`MAX_CALL_DEPTH`] deep. Nothing was sent.
    #[error("cluster calls may be {MAX_CALL_DEPTH} deep; this one would be deeper")]
    DepthExceeded,
    /// No such namespace here, and no control plane to ask. Nothing was sent.
    #[error(
        "unknown cluster target {0}: no such namespace on this worker, and no pinboard configured"
    )]
    UnknownTarget(String),
    /// This worker has no session with the control plane at the moment. Nothing was sent.
    #[error(
        "a call to another worker needs a live session with the control plane, and there is none at the moment"
    )]
    NoSession,
    /// The control plane could not be reached, or broke off before it answered. The call may have run.
    #[error("the control plane did not answer")]
    Unreachable(#[source] BoxError),
    /// No answer within the request's timeout. The call may have run.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The answer's body broke off, or is not what was asked for.
    #[error("the answer could not be read")]
    Body(#[source] BoxError),
    /// A WebSocket was asked for, and the answer is another: a refusal of the host, of the authorizer or of the handler.
    #[error("the socket was refused: {0}")]
    SocketRefused(Box<SocketRefused>),
    /// What answered the handshake of a WebSocket does not speak the protocol.
    #[error("the handshake of the socket failed: {0}")]
    Handshake(String),
}

/// The answer to a handshake that granted no socket.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SocketRefused {
    /// The status: 403 for a denial, 503 where the same may succeed a little later.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, or the first 64 KiB of it.
    pub body: Bytes,
}

impl fmt::Display for SocketRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// As much as a line of a log has room for.
        const SHOWN: usize = 300;
        let shown = &self.body[..self.body.len().min(SHOWN)];
        write!(f, "{}", self.status.as_u16())?;
        if !shown.is_empty() {
            write!(f, " {}", String::from_utf8_lossy(shown))?;
        }
        Ok(())
    }
}
