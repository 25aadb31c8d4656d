//! A WebSocket to another instance.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use futures_util::TryStreamExt;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use serde::Serialize;

use super::error::{ClusterError, SocketRefused};
use super::request::Draft;
use super::response::Deadline;
use crate::ws::{ClientHandshake, ClientOptions, NoSocket, WebSocket};

/// How much of a refusal's body is read, in bytes.
const MOST_BODY: usize = 64 << 10;

/// A WebSocket that is being asked for. Mistakes are reported by [`ClusterSocketRequest::connect`].
///
/// What it connects to is a WebSocket route of the target, on this worker or on another. The socket that comes of it is
/// the same as a handler's, seen from its other end: messages of both kinds, close codes and reasons go both ways, a slow
/// receiver slows its sender down, and silence is met with pings.
///
/// It lives as long as it is kept, and no longer than the instance that opened it: the target then hears 1001. A socket that
/// nobody reads keeps no instance from being evicted; read it in a handler or in a task
/// ([`Context::spawn`](crate::Context::spawn)). An open socket is no call that anybody waits for: what its two ends do to
/// each other is no part of a chain of calls.
#[must_use = "a socket is not asked for until `connect` is called"]
pub struct ClusterSocketRequest {
    draft: Draft,
    options: ClientOptions,
}

impl ClusterSocketRequest {
    pub(super) fn new(draft: Draft) -> Self {
        Self {
            draft,
            options: ClientOptions::default(),
        }
    }

    /// Adds a header to the handshake; see [`ClusterRequest::header`](crate::ClusterRequest::header). Those of the protocol
    /// itself are not the caller's to set.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName, Error: fmt::Display>,
        V: TryInto<HeaderValue, Error: fmt::Display>,
    {
        self.draft.header(name, value);
        self
    }

    /// Sets headers of the handshake; see [`ClusterRequest::headers`](crate::ClusterRequest::headers).
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.draft.headers(headers);
        self
    }

    /// Adds `query` to the path, form-encoded.
    pub fn query(mut self, query: &impl Serialize) -> Self {
        self.draft.query(query);
        self
    }

    /// Offers subprotocols, best first; [`WebSocket::protocol`] says which one the target has chosen.
    pub fn protocols<I>(mut self, protocols: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.options.protocols = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the largest incoming message, in bytes;
    /// [`DEFAULT_MAX_MESSAGE_SIZE`](crate::ws::DEFAULT_MAX_MESSAGE_SIZE) if not set. A larger one closes the socket with
    /// 1009.
    pub fn max_message_size(mut self, bytes: usize) -> Self {
        self.options.max_message_size = bytes;
        self
    }

    /// Sets the largest incoming frame, in bytes; as large as a message if not set.
    pub fn max_frame_size(mut self, bytes: usize) -> Self {
        self.options.max_frame_size = Some(bytes);
        self
    }

    /// Sets how long the target may be silent before it is pinged, while something waits in a `recv`;
    /// [`DEFAULT_PING_INTERVAL`](crate::ws::DEFAULT_PING_INTERVAL) if not set. [`Duration::MAX`] turns pings off.
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.options.keep_alive.interval = interval;
        self
    }

    /// Sets how long the target may stay silent after a ping before `recv` ends with
    /// [`SocketError::ServerLeft`](crate::ws::SocketError::ServerLeft);
    /// [`DEFAULT_PING_TIMEOUT`](crate::ws::DEFAULT_PING_TIMEOUT) if not set.
    pub fn ping_timeout(mut self, timeout: Duration) -> Self {
        self.options.keep_alive.timeout = timeout;
        self
    }

    /// Gives up after `timeout` if there is no socket by then; there is none by default. An open socket has no deadline.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.timeout = Some(timeout);
        self
    }

    /// Asks for the socket, and waits until it is open.
    ///
    /// # Errors
    ///
    /// [`ClusterError::SocketRefused`] with the answer of a target, or of its host, that grants none; otherwise as
    /// [`ClusterRequest::send`](crate::ClusterRequest::send), and [`ClusterError::Handshake`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the socket. Its handler may have begun; it finds that its client has left.
    pub async fn connect(self) -> Result<WebSocket, ClusterError> {
        let timeout = self.draft.timeout;
        let domain = self.draft.seam.domain().clone();
        match timeout.map(|timeout| Deadline::new(domain, timeout)) {
            None => self.open().await,
            Some(deadline) => deadline.bound(self.open()).await?,
        }
    }

    async fn open(self) -> Result<WebSocket, ClusterError> {
        let Self { mut draft, options } = self;
        let (uri, headers) = draft.finish()?;
        let seam = draft.seam;
        let domain = seam.domain().clone();
        let (handshake, request) = ClientHandshake::new(domain, uri, headers, options)
            .map_err(ClusterError::InvalidRequest)?;
        let answer = Arc::clone(&seam).call(request).await?;
        match handshake.finish(answer).await {
            Ok((socket, afterlife)) => {
                seam.look_after(afterlife);
                Ok(socket)
            }
            Err(NoSocket::Refused(answer)) => Err(refused(answer).await),
            Err(NoSocket::NotOne(why)) => Err(ClusterError::Handshake(why.to_owned())),
            Err(NoSocket::Lost(error)) => Err(ClusterError::Unreachable(error.into())),
        }
    }
}

async fn refused(answer: Response) -> ClusterError {
    let (head, body) = answer.into_parts();
    let mut chunks = body.into_data_stream();
    let mut body = Vec::new();
    while body.len() < MOST_BODY {
        match chunks.try_next().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return ClusterError::Body(error.into()),
        }
    }
    body.truncate(MOST_BODY);
    ClusterError::SocketRefused(Box::new(SocketRefused {
        status: head.status,
        headers: head.headers,
        body: Bytes::from(body),
    }))
}

impl fmt::Debug for ClusterSocketRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterSocketRequest")
            .field("draft", &self.draft)
            .field("protocols", &self.options.protocols)
            .finish_non_exhaustive()
    }
}
