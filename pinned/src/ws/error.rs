//! What can go wrong on a socket.

use std::{error::Error, io};

use tungstenite::{
    error::{CapacityError, Error as WireError, ProtocolError},
    protocol::Role,
};

/// Why an operation on a socket failed. None of these is worth trying again on the same socket, except
/// [`TooLarge`](Self::TooLarge) from a send.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The client closed the socket, lost its connection, or has not been heard for too long.
    ///
    /// Let it escape from the handler: the host takes it as a quiet end.
    #[error("the client has left the socket")]
    ClientLeft,
    /// The other end closed a socket that this instance had opened ([`Cluster::websocket`](crate::Cluster::websocket)), lost
    /// its connection, or has not been heard for too long.
    #[error("the other end has left the socket")]
    ServerLeft,
    /// The host ended the socket, for example because the instance is closing.
    #[error("the host has ended the socket")]
    EndedByHost,
    /// This end has sent its close frame; nothing can be sent after it.
    #[error("the socket is closed")]
    Closed,
    /// The upgrade has not been accepted yet.
    #[error("the socket has not been accepted")]
    NotAccepted,
    /// A message over a limit: an incoming one (the socket is then closed with 1009), or a control frame to send.
    #[error("a message of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The other end broke the protocol; the socket has been closed with 1002, or 1007 for text that is not UTF-8.
    #[error("the other end broke the WebSocket protocol")]
    Protocol(#[source] Box<dyn Error + Send + Sync>),
    /// The connection failed in another way.
    #[error("the connection of the socket failed")]
    Io(#[source] io::Error),
}

impl SocketError {
    /// Whether the client is gone: an ordinary end, and nobody's fault.
    ///
    /// ```
    /// # use pinned::ws::SocketError;
    /// assert!(SocketError::ClientLeft.is_client_left());
    /// assert!(!SocketError::EndedByHost.is_client_left());
    /// ```
    #[must_use]
    pub fn is_client_left(&self) -> bool {
        matches!(self, Self::ClientLeft)
    }

    /// Whether the host ended the socket.
    #[must_use]
    pub fn is_ended_by_host(&self) -> bool {
        matches!(self, Self::EndedByHost)
    }
}

impl SocketError {
    /// The peer of the end that plays `role` is gone.
    pub(super) fn left(role: Role) -> Self {
        match role {
            Role::Server => Self::ClientLeft,
            Role::Client => Self::ServerLeft,
        }
    }

    /// What an error of the protocol's state machine means to the end that plays `role`.
    pub(super) fn of(role: Role, error: WireError) -> Self {
        match error {
            WireError::Io(error) if means_gone(&error) => Self::left(role),
            WireError::Io(error) => Self::Io(error),
            WireError::Protocol(ProtocolError::ResetWithoutClosingHandshake)
            | WireError::ConnectionClosed
            | WireError::AlreadyClosed => Self::left(role),
            WireError::Capacity(CapacityError::MessageTooLong { size, max_size }) => {
                Self::TooLarge {
                    size,
                    limit: max_size,
                }
            }
            error => Self::Protocol(Box::new(error)),
        }
    }
}

/// Whether a transport error says that the peer is not there any more.
fn means_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NotConnected
            | io::ErrorKind::TimedOut
            | io::ErrorKind::UnexpectedEof
    )
}
