//! The promise of a position.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::Frontier;
use super::error::FrontierError;

/// The promise of everything enlisted on an instance up to a moment: awaiting it means that all of it is durable (D15).
///
/// It may be awaited as often as is useful, by reference too, or dropped: what was enlisted goes on all the same. It says
/// that work is durably admitted, not that it ran.
#[must_use = "what was enlisted is durable once the receipt has been awaited; to go on without that, `let _ =` it"]
#[derive(Clone)]
pub struct Receipt {
    frontier: Frontier,
    position: u64,
}

impl Receipt {
    pub(super) fn new(frontier: Frontier, position: u64) -> Self {
        Self { frontier, position }
    }

    /// The position that it stands for.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl IntoFuture for Receipt {
    type Output = Result<(), FrontierError>;
    type IntoFuture = Wait;

    fn into_future(self) -> Wait {
        self.frontier.wait_for(self.position)
    }
}

impl IntoFuture for &Receipt {
    type Output = Result<(), FrontierError>;
    type IntoFuture = Wait;

    fn into_future(self) -> Wait {
        self.frontier.wait_for(self.position)
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receipt").field(&self.position).finish()
    }
}

/// A wait for durability; see [`Frontier::wait_for`].
///
/// # Cancel safety
///
/// Dropping it gives up the wait alone.
#[must_use = "a wait does nothing until it is awaited"]
pub struct Wait(State);

enum State {
    /// Nobody has asked the log yet.
    New(Frontier, u64),
    /// `None` once it has been told.
    Ready(Option<Result<(), FrontierError>>),
    Pending(oneshot::Receiver<Result<(), FrontierError>>),
}

impl Wait {
    pub(super) fn of(frontier: Frontier, position: u64) -> Self {
        Self(State::New(frontier, position))
    }

    pub(super) fn ready(outcome: Result<(), FrontierError>) -> Self {
        Self(State::Ready(Some(outcome)))
    }

    pub(super) fn pending(receiver: oneshot::Receiver<Result<(), FrontierError>>) -> Self {
        Self(State::Pending(receiver))
    }
}

impl Future for Wait {
    type Output = Result<(), FrontierError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = &mut self.get_mut().0;
        if let State::New(frontier, position) = state {
            *state = frontier.ask(*position).0;
        }
        let outcome = match state {
            // Asked of the log above.
            State::New(..) => return Poll::Ready(Err(FrontierError::Closed)),
            // Polled again after its end it says that there is nothing more.
            State::Ready(outcome) => outcome.take().unwrap_or(Err(FrontierError::Closed)),
            // The sender goes away unused only with the whole log.
            State::Pending(receiver) => {
                ready!(receiver.poll_unpin(cx)).unwrap_or(Err(FrontierError::Closed))
            }
        };
        *state = State::Ready(None);
        Poll::Ready(outcome)
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::New(_, position) => return f.debug_tuple("Wait").field(position).finish(),
            State::Ready(_) => "ready",
            State::Pending(_) => "pending",
        };
        f.debug_tuple("Wait").field(&state).finish()
    }
}
