//! Sockets as streams and sinks.
//!
//! A look that is ready costs no more than the async method; only one that has to wait keeps a boxed future.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_sink::Sink;
use futures_util::future::BoxFuture;
use sync_wrapper::SyncWrapper;

use super::{
    Message, SocketError, WebSocket, WebSocketReceiver, WebSocketSender,
    link::{KeepAlive, Step},
    slot::Slot,
};

type Item = Option<Result<Message, SocketError>>;

/// A receive that waits.
pub(super) type PollRecv = Waiting<Item>;

/// A flush that waits.
pub(super) type PollFlush = Waiting<Result<(), SocketError>>;

/// The operation that a stream or sink waits for. `Sync`, so that a handler may hold a `&WebSocket` across an await.
pub(super) struct Waiting<T>(SyncWrapper<Option<BoxFuture<'static, T>>>);

// ===== impl Waiting =====

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self(SyncWrapper::new(None))
    }
}

impl<T> Waiting<T> {
    /// Polls the operation that waits, or else looks, and starts to wait if that was not enough.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        look: impl FnOnce() -> Poll<T>,
        wait: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> Poll<T> {
        let waiting = self.0.get_mut();
        if waiting.is_none()
            && let Poll::Ready(output) = look()
        {
            return Poll::Ready(output);
        }
        let output = ready!(waiting.get_or_insert_with(wait).as_mut().poll(cx));
        *waiting = None;
        Poll::Ready(output)
    }
}

// ===== impl Stream =====

impl Stream for WebSocketReceiver {
    type Item = Result<Message, SocketError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self {
            slot,
            keep_alive,
            pending,
        } = self.get_mut();
        pending.poll(
            cx,
            || match slot.step(*keep_alive) {
                Step::Item(item) => Poll::Ready(Some(item)),
                Step::End => Poll::Ready(None),
                Step::Wait(_) => Poll::Pending,
            },
            || Box::pin(recv(slot.clone(), *keep_alive)),
        )
    }
}

async fn recv(slot: Arc<Slot>, keep_alive: KeepAlive) -> Item {
    slot.recv(keep_alive).await
}

impl Stream for WebSocket {
    type Item = Result<Message, SocketError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.get_mut().receiver).poll_next(cx)
    }
}

// ===== impl Sink =====

impl Sink<Message> for WebSocketSender {
    type Error = SocketError;

    /// Ready once the connection has taken what was sent before, so that at most one message of a sink waits.
    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.poll_flush(cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), SocketError> {
        self.slot.queue(message)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        let Self { slot, pending } = self.get_mut();
        pending.poll(
            cx,
            || slot.poll_flush(),
            || {
                let slot = slot.clone();
                Box::pin(async move { slot.flush().await })
            },
        )
    }

    /// Sends a close frame without a code, unless there was one.
    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        if !self.slot.is_closed() {
            // Another task may be first, which is as good.
            let _ = self.slot.queue(Message::Close(None));
        }
        match ready!(self.as_mut().poll_flush(cx)) {
            Err(SocketError::ClientLeft | SocketError::ServerLeft | SocketError::EndedByHost) => {
                Poll::Ready(Ok(()))
            }
            result => Poll::Ready(result),
        }
    }
}

impl Sink<Message> for WebSocket {
    type Error = SocketError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        Pin::new(&mut self.get_mut().sender).poll_ready(cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), SocketError> {
        Pin::new(&mut self.get_mut().sender).start_send(message)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        Pin::new(&mut self.get_mut().sender).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        Pin::new(&mut self.get_mut().sender).poll_close(cx)
    }
}
