//! The host's end of a socket.

use std::{fmt, sync::Arc};

use axum::response::Response;
use http::request::Parts;
use tokio::sync::oneshot;

use super::{
    CloseFrame, Message, SocketError, WebSocketUpgrade,
    handshake::{self, Refusal},
    slot::Slot,
    transport::Transport,
};
use crate::domain::Domain;

/// The host's hold on a socket, from before its handler exists until after it is gone. Clones are the same socket.
///
/// The request is answered by the first of: the handler's (or authorizer's) acceptance, its refusal, the host's
/// [`refuse`](Self::refuse), [`end`](Self::end) before any of these, and the drop of everything that could still
/// answer; the last two say 403 with an empty body. A handler that merely drops its upgrade leaves the answer to the
/// host, which knows whether the handler failed.
#[derive(Clone)]
pub(crate) struct SocketControl {
    slot: Arc<Slot>,
}

impl SocketControl {
    /// Checks a request for a socket, and takes the means of the upgrade out of it.
    ///
    /// The receiver yields the answer to the request. Dropping it says that the client is gone, and a later acceptance
    /// then fails with [`SocketError::ClientLeft`].
    ///
    /// # Errors
    /// The whole answer, for a request that cannot have a socket: 426 or 400.
    pub(crate) fn open(
        parts: &mut Parts,
        domain: Domain,
    ) -> Result<(Self, oneshot::Receiver<Response>), Response> {
        let opened = handshake::check(parts).and_then(|handshake| {
            let transport = Transport::take(&mut parts.extensions).ok_or(Refusal::NoConnection)?;
            Ok((handshake, transport))
        });
        let (handshake, transport) =
            opened.map_err(|refusal| refusal.into_response(parts.version))?;
        let (answer, answered) = oneshot::channel();
        let slot = Arc::new(Slot::new(domain, handshake, transport, answer));
        Ok((Self { slot }, answered))
    }

    /// The other end, for an authorizer and then for the handler. Where one of them has accepted, the acceptance of
    /// the next returns the same open socket.
    pub(crate) fn upgrade(&self) -> WebSocketUpgrade {
        WebSocketUpgrade::new(self.slot.clone())
    }

    /// Whether the upgrade was accepted, so that no HTTP answer can be given any more.
    pub(crate) fn is_accepted(&self) -> bool {
        self.slot.is_accepted()
    }

    /// Answers with `response` instead of the upgrade; false if the request has its answer already.
    pub(crate) fn refuse(&self, response: Response) -> bool {
        self.slot.refuse(response)
    }

    /// Sends one text frame on an accepted socket, such as the payload of a denial (H2.9).
    ///
    /// # Errors
    /// [`SocketError::NotAccepted`] before the acceptance, [`SocketError::ClientLeft`] when the client has left or
    /// takes nothing for a second, [`SocketError::Closed`] after a close.
    ///
    /// # Cancel safety
    /// When dropped, the frame goes out whole or not at all.
    pub(crate) async fn send_text(&self, text: String) -> Result<(), SocketError> {
        let sent = self.slot.send(Message::text(text));
        self.slot.within_close_wait(sent).await
    }

    /// Ends the socket: takes it from its handler, sends a close frame unless there was one, and waits for the
    /// client's, all within a second of domain time.
    ///
    /// Whatever the handler does with the socket then is [`SocketError::EndedByHost`], and that includes an operation
    /// in which it waits now. Where nothing was accepted the answer is 403; on a socket that is over nothing happens.
    ///
    /// # Cancel safety
    /// The socket has ended from the first poll on; dropping the future shortens the goodbye.
    pub(crate) async fn end(&self, code: u16, reason: &str) {
        self.slot.end(CloseFrame::new(code, reason)).await;
    }
}

impl fmt::Debug for SocketControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketControl")
            .field("accepted", &self.is_accepted())
            .finish_non_exhaustive()
    }
}
