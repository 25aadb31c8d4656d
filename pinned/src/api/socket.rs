//! WebSocket handlers: their outcomes, and the life of a session from the handler's start to its close frame.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::StatusCode;
use parking_lot::Mutex;

use super::refusal::{Refusal, Unavailable, empty_response, internal_error};
use super::scope::Scope;
use super::seam::{WorkClass, boxed};
use super::turn::Tracked;
use crate::error::{BoxError, causes};
use crate::ws::{FromUpgrade, SocketControl, SocketError, close_code};

/// How a WebSocket handler ended.
#[doc(hidden)]
pub enum SocketEnd {
    Done,
    /// A host refused what the handler asked of it, for the moment.
    Refused(Refusal),
    Failed(BoxError),
}

/// What a WebSocket handler may return: nothing, or a `Result` (H6.6, H6.7).
///
/// An error that says that the client has left ends the socket quietly, a [`Refusal`] that may be tried again closes
/// it with 1013, and any other with 1011.
#[diagnostic::on_unimplemented(
    message = "a WebSocket handler returns nothing or `Result<(), E>`, not `{Self}`",
    label = "unsupported return type",
    note = "to answer the upgrade with a response, take `WebSocketUpgrade` and call `refuse`"
)]
pub trait SocketReturn {
    #[doc(hidden)]
    fn into_socket_return(self) -> SocketEnd;
}

impl SocketReturn for () {
    fn into_socket_return(self) -> SocketEnd {
        SocketEnd::Done
    }
}

impl<E: Into<BoxError>> SocketReturn for Result<(), E> {
    fn into_socket_return(self) -> SocketEnd {
        let Err(error) = self.map_err(Into::into) else {
            return SocketEnd::Done;
        };
        if is_over(error.as_ref()) {
            return SocketEnd::Done;
        }
        match retryable(error.as_ref()) {
            Some(refusal) => SocketEnd::Refused(refusal.clone()),
            None => SocketEnd::Failed(error),
        }
    }
}

/// The refusal behind an error, if it is one that may be tried again.
fn retryable<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Refusal> {
    causes(error)
        .find_map(|error| match error.downcast_ref::<Unavailable>() {
            Some(Unavailable::Refused(refusal)) => Some(refusal),
            _ => error.downcast_ref::<Refusal>(),
        })
        .filter(|refusal| refusal.is_retryable())
}

/// Whether an error says that the socket ended in an ordinary way.
fn is_over(error: &(dyn Error + 'static)) -> bool {
    causes(error)
        .filter_map(|error| error.downcast_ref::<SocketError>())
        .any(|error| error.is_client_left() || error.is_ended_by_host())
}

/// Why the host is about to close a WebSocket that was accepted (H2.16).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketFailure {
    /// A fault; the client may be told the message and nothing more.
    Failed {
        /// `authorization failed` or `activation failed`.
        message: String,
    },
    /// A refusal; the same request may succeed a little later.
    Refused {
        /// The refusal's text.
        message: String,
        /// When to try again.
        retry_after: Duration,
    },
}

type FailureHook = Box<dyn Fn(&SocketFailure) -> Option<String> + Send + Sync>;

/// The hook that an authorizer has set for its socket.
#[derive(Clone, Default)]
pub(crate) struct FailureHooks(Arc<Mutex<Option<FailureHook>>>);

impl FailureHooks {
    pub(crate) fn set(&self, hook: FailureHook) {
        let replaced = self.0.lock().replace(hook);
        // What it owns is the user's: no lock is held.
        drop(replaced);
    }

    /// What the hook wants to be sent before the close. Its panic is logged and ignored.
    fn last_words(&self, failure: &SocketFailure) -> Option<String> {
        let hook = self.0.lock().take()?;
        catch_unwind(AssertUnwindSafe(|| hook(failure))).unwrap_or_else(|_| {
            tracing::error!(target: "pinned::host", "a socket failure hook panicked");
            None
        })
    }
}

/// One WebSocket on its way to its handler.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) control: SocketControl,
    pub(crate) hooks: FailureHooks,
}

impl Session {
    /// Closes an accepted socket for a fault. Not accepted: 403, as the wire shows a close before the acceptance.
    pub(crate) async fn fail(&self, message: &'static str) {
        let failure = SocketFailure::Failed {
            message: message.to_owned(),
        };
        self.say_and_end(&failure, close_code::INTERNAL_ERROR, message)
            .await;
    }

    async fn say_and_end(&self, failure: &SocketFailure, code: u16, reason: &str) {
        if self.control.is_accepted()
            && let Some(words) = self.hooks.last_words(failure)
        {
            // The close says the rest, also to a client that did not take this.
            let _ = self.control.send_text(words).await;
        }
        self.control.end(code, reason).await;
    }

    /// Ends the socket of a request that could not begin. The response is for one that was not accepted.
    pub(crate) async fn fail_to_begin(&self, unavailable: Unavailable) -> Response {
        if !self.control.is_accepted() {
            return match &unavailable {
                // A fault before the acceptance is a plain 403 on the wire (H4.6).
                Unavailable::SetupFailed(error) if error.as_http().is_none() => {
                    empty_response(StatusCode::FORBIDDEN)
                }
                _ => unavailable.into_response(),
            };
        }
        match unavailable {
            Unavailable::SetupFailed(error) if error.as_http().is_some() => {
                self.control
                    .end(close_code::INTERNAL_ERROR, "activation failed")
                    .await;
            }
            Unavailable::SetupFailed(_) => self.fail("activation failed").await,
            Unavailable::Refused(refusal) if refusal.is_retryable() => {
                let failure = SocketFailure::Refused {
                    message: refusal.detail().to_owned(),
                    retry_after: Duration::from_secs(1),
                };
                self.say_and_end(&failure, close_code::TRY_AGAIN_LATER, refusal.detail())
                    .await;
            }
            Unavailable::Refused(Refusal::Aborted) => {
                self.control
                    .end(close_code::SERVICE_RESTART, "instance aborted")
                    .await;
            }
            Unavailable::Refused(refusal) => {
                self.control
                    .end(close_code::INTERNAL_ERROR, refusal.detail())
                    .await;
            }
        }
        empty_response(StatusCode::FORBIDDEN)
    }

    /// Ends the socket of a request whose instance closed before its handler began.
    pub(crate) async fn instance_closed(&self) -> Response {
        self.fail_to_begin(Unavailable::Refused(Refusal::Closing))
            .await
    }

    /// Runs the handler until it ends or is cut off, and closes the socket accordingly. The response is for a socket
    /// that the handler never accepted.
    pub(crate) async fn run<S, F, Fut>(
        self,
        tracked: Tracked,
        handler: &'static str,
        scope: Scope,
        run: F,
    ) -> Response
    where
        S: FromUpgrade,
        F: FnOnce(S) -> Fut + Send,
        Fut: Future<Output = SocketEnd> + Send,
    {
        let seam = Arc::clone(tracked.seam());
        let upgrade = self.control.upgrade();
        let mut work = boxed(
            scope.run(
                AssertUnwindSafe(async move {
                    match S::from_upgrade(upgrade).await {
                        Ok(socket) => run(socket).await,
                        Err(error) => Err(error).into_socket_return(),
                    }
                })
                .catch_unwind(),
            ),
        );
        let outcome = tokio::select! {
            biased;
            // First: a handler that fails because its instance is gone is cut off rather than at fault.
            () = seam.cut_off(WorkClass::Stream) => None,
            outcome = &mut work => Some(outcome),
        };
        // The handler's cleanup runs before its client hears of the end (H6.8), which its panic does not keep from it.
        if catch_unwind(AssertUnwindSafe(|| drop(work))).is_err() {
            tracing::error!(
                target: "pinned::host",
                instance_id = seam.id(),
                namespace = seam.namespace(),
                handler,
                "the cleanup of a websocket handler panicked"
            );
        }
        let response = match outcome {
            Some(Ok(SocketEnd::Done)) => {
                self.control.end(close_code::NORMAL, "").await;
                empty_response(StatusCode::FORBIDDEN)
            }
            Some(Ok(SocketEnd::Refused(refusal))) => {
                if self.control.is_accepted() {
                    self.control
                        .end(close_code::TRY_AGAIN_LATER, refusal.detail())
                        .await;
                }
                refusal.into_response_after_work()
            }
            Some(Ok(SocketEnd::Failed(error))) => {
                tracing::error!(
                    target: "pinned::host",
                    instance_id = seam.id(),
                    namespace = seam.namespace(),
                    handler,
                    %error,
                    "a websocket handler failed"
                );
                self.end_faulty().await
            }
            Some(Err(_panic)) => {
                Arc::clone(&seam).abort_after_panic(handler);
                self.end_faulty().await
            }
            None => {
                if self.control.is_accepted() {
                    self.control
                        .end(close_code::SERVICE_RESTART, "instance closed")
                        .await;
                }
                Refusal::Aborted.into_response()
            }
        };
        drop(tracked);
        response
    }

    async fn end_faulty(&self) -> Response {
        let response = internal_error();
        if self.control.is_accepted() {
            self.control
                .end(close_code::INTERNAL_ERROR, "internal error")
                .await;
        }
        response
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("control", &self.control)
            .finish_non_exhaustive()
    }
}
