//! WebSockets of an instance: accepting one, talking over it, and ending it from either side.
//!
//! A handler takes a [`WebSocket`] when it accepts every client, or a [`WebSocketUpgrade`] when it wants to choose a
//! subprotocol, set limits, or refuse. Behind both stands one *slot* that the host shares: the host can end a socket
//! whatever its handler is doing at the time, and whether or not it is still there.
//!
//! ```
//! use pinned::ws::{Message, SocketError, WebSocket};
//!
//! async fn echo(mut socket: WebSocket) -> Result<(), SocketError> {
//!     while let Some(message) = socket.recv().await {
//!         if let Message::Text(text) = message? {
//!             socket.send_text(text).await?;
//!         }
//!     }
//!     Ok(())
//! }
//! ```

mod afterlife;
mod client;
mod control;
mod error;
mod handshake;
mod link;
mod message;
mod poll;
mod slot;
mod socket;
mod state;
#[cfg(test)]
mod tests;
mod transport;
mod upgrade;
mod wakes;

pub use error::SocketError;
pub use message::{CloseFrame, Message, Utf8Bytes, close_code};
pub use socket::{WebSocket, WebSocketReceiver, WebSocketSender};
pub use transport::InProcessUpgrade;
pub use upgrade::{
    DEFAULT_MAX_MESSAGE_SIZE, DEFAULT_PING_INTERVAL, DEFAULT_PING_TIMEOUT, FromUpgrade,
    WebSocketUpgrade,
};

pub(crate) use self::{
    afterlife::Afterlife,
    client::{ClientHandshake, ClientOptions, NoSocket},
    control::SocketControl,
    handshake::is_upgrade,
};
