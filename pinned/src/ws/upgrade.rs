//! A client's wish for a socket, before it is granted.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use axum::response::IntoResponse;

use super::{
    SocketError, WebSocket,
    link::{KeepAlive, Limits},
    slot::Slot,
};

/// The largest incoming message, in bytes, unless the handler sets another: 16 MiB.
///
/// A frame may be as large as a message.
pub const DEFAULT_MAX_MESSAGE_SIZE: usize = 16 * 1024 * 1024;

/// How long a client may be silent before it is pinged, unless the handler sets another time: 20 s.
///
/// Below the idle limits of common proxies and load balancers, most of which are a minute.
pub const DEFAULT_PING_INTERVAL: Duration = Duration::from_secs(20);

/// How long a client may stay silent after a ping before it is taken for gone, unless the handler sets another time: 20 s.
pub const DEFAULT_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A WebSocket upgrade that waits for its answer: accept it or refuse it.
///
/// If it is dropped, the host answers once the handler has returned: with 403, or with the handler's failure.
///
/// ```
/// use pinned::ws::{SocketError, WebSocketUpgrade};
///
/// async fn chat(upgrade: WebSocketUpgrade) -> Result<(), SocketError> {
///     let socket = upgrade.protocols(["chat.v2", "chat.v1"]).accept().await?;
///     let greeting = match socket.protocol() {
///         Some("chat.v2") => r#"{"hello": true}"#,
///         _ => "hello",
///     };
///     socket.send_text(greeting).await
/// }
/// ```
#[must_use = "an upgrade that is neither accepted nor refused is answered with 403"]
pub struct WebSocketUpgrade {
    slot: Arc<Slot>,
    protocol: Option<String>,
    max_message_size: usize,
    max_frame_size: Option<usize>,
    keep_alive: KeepAlive,
}

/// What a handler can take its socket as.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the socket of a WebSocket handler",
    label = "take a `WebSocket`, or a `WebSocketUpgrade` to choose a subprotocol or to refuse"
)]
pub trait FromUpgrade: Sized + Send {
    /// Makes the handler's argument.
    ///
    /// # Errors
    /// When the upgrade cannot be granted, which means that the client has left or the host has ended the socket.
    fn from_upgrade(
        upgrade: WebSocketUpgrade,
    ) -> impl Future<Output = Result<Self, SocketError>> + Send;
}

// ===== impl WebSocketUpgrade =====

impl WebSocketUpgrade {
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        Self {
            slot,
            protocol: None,
            max_message_size: DEFAULT_MAX_MESSAGE_SIZE,
            max_frame_size: None,
            keep_alive: KeepAlive {
                interval: DEFAULT_PING_INTERVAL,
                timeout: DEFAULT_PING_TIMEOUT,
            },
        }
    }

    /// The subprotocols that the client offers, in its order of preference.
    pub fn requested_protocols(&self) -> impl Iterator<Item = &str> {
        self.slot.offered().iter().map(String::as_str)
    }

    /// Chooses the first of `protocols`, best first, that the client offers; none if it offers none of them.
    ///
    /// Without effect where the authorizer has accepted the socket.
    pub fn protocols<I>(mut self, protocols: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let offered = self.slot.offered();
        self.protocol = protocols.into_iter().find_map(|protocol| {
            let protocol = protocol.as_ref();
            offered.iter().find(|&offer| offer == protocol).cloned()
        });
        self
    }

    /// Sets the largest incoming message, in bytes; [`DEFAULT_MAX_MESSAGE_SIZE`] if not set.
    ///
    /// A larger one closes the socket with 1009.
    pub fn max_message_size(mut self, bytes: usize) -> Self {
        self.max_message_size = bytes;
        self
    }

    /// Sets the largest incoming frame, in bytes; as large as a message if not set.
    pub fn max_frame_size(mut self, bytes: usize) -> Self {
        self.max_frame_size = Some(bytes);
        self
    }

    /// Sets how long the client may be silent before it is pinged, while the handler waits in a `recv`;
    /// [`DEFAULT_PING_INTERVAL`] if not set. [`Duration::MAX`] turns pings off.
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.keep_alive.interval = interval;
        self
    }

    /// Sets how long the client may stay silent after a ping before `recv` ends with [`SocketError::ClientLeft`];
    /// [`DEFAULT_PING_TIMEOUT`] if not set.
    pub fn ping_timeout(mut self, timeout: Duration) -> Self {
        self.keep_alive.timeout = timeout;
        self
    }

    /// Grants the upgrade.
    ///
    /// Where the authorizer has accepted the socket already, this is that socket, under the limits set here.
    ///
    /// # Errors
    /// [`SocketError::ClientLeft`] when the client did not wait for the answer, [`SocketError::EndedByHost`] when the
    /// host has ended the socket.
    ///
    /// # Cancel safety
    /// Dropped after its first poll, the upgrade is granted, and the host will end the socket.
    pub async fn accept(self) -> Result<WebSocket, SocketError> {
        let limits = Limits {
            message: self.max_message_size,
            frame: self.max_frame_size.unwrap_or(self.max_message_size),
        };
        self.slot.accept(self.protocol, limits).await?;
        Ok(WebSocket::new(self.slot, self.keep_alive))
    }

    /// Answers the request with `response` instead of the upgrade.
    ///
    /// Where the authorizer has accepted the socket already, it is closed with 1008 instead.
    pub fn refuse(self, response: impl IntoResponse) {
        self.slot.refuse_or_close(response.into_response());
    }
}

impl fmt::Debug for WebSocketUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketUpgrade")
            .field("protocol", &self.protocol)
            .field("max_message_size", &self.max_message_size)
            .field("max_frame_size", &self.max_frame_size)
            .field("keep_alive", &self.keep_alive)
            .finish_non_exhaustive()
    }
}

// ===== impl FromUpgrade =====

impl FromUpgrade for WebSocketUpgrade {
    async fn from_upgrade(upgrade: WebSocketUpgrade) -> Result<Self, SocketError> {
        Ok(upgrade)
    }
}

impl FromUpgrade for WebSocket {
    async fn from_upgrade(upgrade: WebSocketUpgrade) -> Result<Self, SocketError> {
        upgrade.accept().await
    }
}
