//! The handler's end of an open socket.

use std::{fmt, sync::Arc};

use super::{
    CloseFrame, Message, SocketError, Utf8Bytes,
    link::KeepAlive,
    poll::{PollFlush, PollRecv},
    slot::Slot,
};

/// An open WebSocket: a handler's, or one that an instance has opened to another
/// ([`Cluster::websocket`](crate::Cluster::websocket)). What is said here of the client is there the target, whose leaving
/// is [`SocketError::ServerLeft`].
///
/// It is a [`Stream`](futures_core::Stream) and a [`Sink`](futures_sink::Sink) of messages as well. Pings that arrive
/// are answered while something waits on the socket. When its handler returns, the host closes it with 1000 unless it
/// has been closed.
///
/// A client that vanishes without a word is noticed while the handler waits in [`recv`](Self::recv): after 20 s without
/// a byte from it a ping goes out, and 20 s later it is given up (see
/// [`ping_interval`](super::WebSocketUpgrade::ping_interval)).
#[derive(Debug)]
pub struct WebSocket {
    pub(super) sender: WebSocketSender,
    pub(super) receiver: WebSocketReceiver,
}

/// The half of a [`WebSocket`] that sends. Clones send on the same socket, from any task.
///
/// A message of one task never cuts into that of another, and each task's messages keep their order.
pub struct WebSocketSender {
    pub(super) slot: Arc<Slot>,
    pub(super) pending: PollFlush,
}

/// The half of a [`WebSocket`] that receives.
pub struct WebSocketReceiver {
    pub(super) slot: Arc<Slot>,
    pub(super) keep_alive: KeepAlive,
    pub(super) pending: PollRecv,
}

// ===== impl WebSocket =====

impl WebSocket {
    pub(super) fn new(slot: Arc<Slot>, keep_alive: KeepAlive) -> Self {
        Self {
            sender: WebSocketSender {
                slot: slot.clone(),
                pending: PollFlush::default(),
            },
            receiver: WebSocketReceiver {
                slot,
                keep_alive,
                pending: PollRecv::default(),
            },
        }
    }

    /// The next message; see [`WebSocketReceiver::recv`].
    ///
    /// # Errors
    /// As [`WebSocketReceiver::recv`].
    ///
    /// # Cancel safety
    /// Cancel safe: no message is lost.
    pub async fn recv(&mut self) -> Option<Result<Message, SocketError>> {
        self.receiver.recv().await
    }

    /// Sends `message`; see [`WebSocketSender::send`].
    ///
    /// # Errors
    /// As [`WebSocketSender::send`].
    ///
    /// # Cancel safety
    /// When dropped, the message goes out whole or not at all.
    pub async fn send(&self, message: impl Into<Message>) -> Result<(), SocketError> {
        self.sender.send(message).await
    }

    /// Sends `text`; see [`WebSocketSender::send`].
    ///
    /// # Errors
    /// As [`WebSocketSender::send`].
    ///
    /// # Cancel safety
    /// When dropped, the message goes out whole or not at all.
    pub async fn send_text(&self, text: impl Into<Utf8Bytes>) -> Result<(), SocketError> {
        self.sender.send_text(text).await
    }

    /// Closes the socket; see [`WebSocketSender::close`].
    ///
    /// # Errors
    /// As [`WebSocketSender::close`].
    ///
    /// # Cancel safety
    /// When dropped, the close frame goes out whole or not at all.
    pub async fn close(&self, frame: Option<CloseFrame>) -> Result<(), SocketError> {
        self.sender.close(frame).await
    }

    /// Takes the halves apart, for two tasks.
    #[must_use]
    pub fn split(self) -> (WebSocketSender, WebSocketReceiver) {
        (self.sender, self.receiver)
    }

    /// The subprotocol in use.
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        self.sender.slot.selected()
    }

    /// Whether the conversation is over: either side has sent its close frame, or the client or host has ended it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

// ===== impl WebSocketSender =====

impl WebSocketSender {
    /// Sends `message`, and waits until the connection has taken it. That is what slows a sender down to the pace of
    /// its client; a client that takes nothing holds it until the client or the host ends the socket.
    ///
    /// # Errors
    /// [`SocketError::ClientLeft`] when the client has closed or is gone, [`SocketError::Closed`] after this end's own
    /// close frame, [`SocketError::EndedByHost`], [`SocketError::TooLarge`] for a ping or pong over 125 bytes, and
    /// [`SocketError::Io`].
    ///
    /// # Cancel safety
    /// When dropped, the message goes out whole or not at all.
    pub async fn send(&self, message: impl Into<Message>) -> Result<(), SocketError> {
        self.slot.send(message.into()).await
    }

    /// Sends `text`.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    /// When dropped, the message goes out whole or not at all.
    pub async fn send_text(&self, text: impl Into<Utf8Bytes>) -> Result<(), SocketError> {
        self.slot.send(Message::text(text)).await
    }

    /// Sends a close frame, without waiting for the client's answer: that is still to be received, and the host waits
    /// for it when the handler has returned. Does nothing on a socket that is closed, or that the client or the host
    /// has ended.
    ///
    /// # Errors
    /// [`SocketError::Io`] when the connection fails.
    ///
    /// # Cancel safety
    /// When dropped, the close frame goes out whole or not at all.
    pub async fn close(&self, frame: Option<CloseFrame>) -> Result<(), SocketError> {
        self.slot.close(frame).await
    }

    /// Whether nothing more can be sent; see [`WebSocket::is_closed`].
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.slot.is_closed()
    }
}

impl Clone for WebSocketSender {
    fn clone(&self) -> Self {
        Self {
            slot: self.slot.clone(),
            pending: PollFlush::default(),
        }
    }
}

impl fmt::Debug for WebSocketSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketSender")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

// ===== impl WebSocketReceiver =====

impl WebSocketReceiver {
    /// The next message, or `None` when there will be no more: after the client's close frame, and after an error.
    ///
    /// # Errors
    /// [`SocketError::ClientLeft`] when the client is gone without a close frame, [`SocketError::EndedByHost`],
    /// [`SocketError::TooLarge`] and [`SocketError::Protocol`] when it sent what it may not, and
    /// [`SocketError::Io`]. Each is told once, and is the last item.
    ///
    /// # Cancel safety
    /// Cancel safe: no message is lost, and the silence of a client is measured across calls.
    pub async fn recv(&mut self) -> Option<Result<Message, SocketError>> {
        self.slot.recv(self.keep_alive).await
    }
}

impl fmt::Debug for WebSocketReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketReceiver")
            .field("keep_alive", &self.keep_alive)
            .finish_non_exhaustive()
    }
}
