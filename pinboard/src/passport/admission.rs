//! The answer to a request to the data plane.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use pinned_wire::attestation::Account;

/// A request to the data plane that may go on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admitted {
    /// Whom a provider vouches for. Requests of one static key, or with one JWT, mostly share it.
    pub account: Option<Arc<Account>>,
    /// The `Authorization` header is not passed on: it was resolved, or the namespace does not admit anyone (P7.5).
    pub strip_authorization: bool,
    /// A `pinboard.bearer.*` subprotocol is there and is not passed on (P7.4): what is, is
    /// [`remaining_protocols`](super::remaining_protocols).
    pub strip_bearer_subprotocol: bool,
}

/// A request to the data plane that may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// 401: the namespace wants someone that a provider vouches for.
    Unauthenticated,
    /// 403: the account lacks the scope.
    Forbidden,
}

/// The answer to a request to the data plane: ready at once, unless the keys of an issuer have to be fetched first.
///
/// Await it. A ready one takes no memory beyond itself, and one poll.
///
/// # Cancel safety
///
/// Cancel safe: a fetch that has begun goes on for others.
#[must_use = "nothing is admitted before the answer is awaited"]
pub struct Admit<'a>(State<'a>);

enum State<'a> {
    Ready(Result<Admitted, Denied>),
    Waiting(BoxFuture<'a, Result<Admitted, Denied>>),
    Taken,
}

impl<'a> Admit<'a> {
    pub(super) fn ready(answer: Result<Admitted, Denied>) -> Self {
        Self(State::Ready(answer))
    }

    pub(super) fn waiting(answer: BoxFuture<'a, Result<Admitted, Denied>>) -> Self {
        Self(State::Waiting(answer))
    }

    /// The answer, if it is there already.
    ///
    /// # Errors
    ///
    /// It is not: the same question, to be awaited.
    pub fn now(self) -> Result<Result<Admitted, Denied>, Self> {
        match self.0 {
            State::Ready(answer) => Ok(answer),
            State::Waiting(_) | State::Taken => Err(self),
        }
    }
}

impl Future for Admit<'_> {
    type Output = Result<Admitted, Denied>;

    /// # Panics
    ///
    /// When polled again after it gave its answer.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Waiting(answer) => answer.as_mut().poll(cx),
            State::Ready(_) | State::Taken => match std::mem::replace(&mut self.0, State::Taken) {
                State::Ready(answer) => Poll::Ready(answer),
                State::Waiting(_) | State::Taken => {
                    panic!("an answer is given once")
                }
            },
        }
    }
}

impl fmt::Debug for Admit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::Ready(answer) => f.debug_tuple("Ready").field(answer).finish(),
            State::Waiting(_) => f.write_str("Waiting"),
            State::Taken => f.write_str("Taken"),
        }
    }
}
