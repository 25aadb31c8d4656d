//! A handler that runs to its end, whether or not its client stays.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, CatchUnwind};
use tokio::sync::oneshot;

use super::call::Call;
use super::refusal::{Refusal, internal_error};
use super::route::RouteSpec;
use super::seam::{Seam, WorkClass};
use crate::durability::{Frontier, Wait};

/// What a handler's generated code returns: the answer to one call.
///
/// A handler is polled where its request is, so that one that never waits costs no task. One that waits moves to a
/// task of its own, so that neither a client that leaves nor one that is slow to read can tear it, and the host can
/// cut it off.
#[doc(hidden)]
#[must_use = "a handler does nothing until it is polled"]
pub struct HandlerFuture(State);

/// Small, because it moves on every request; a response stands in a box, since most requests hold none here.
enum State {
    /// Answered without running.
    Ready(Option<Box<Response>>),
    /// Begun, and not polled yet.
    Begun(Option<Handler>),
    /// Running in a task of its own. With the log, its answer is held until what it enlisted is durable.
    Moved(oneshot::Receiver<Response>, Option<Frontier>),
    /// Ended; its answer waits for durability.
    Confirming(Wait, Option<Box<Response>>),
    /// On its way to the handler: arguments, activation, turn. Given up when the client leaves.
    Waiting(BoxFuture<'static, Response>),
}

/// A handler at work.
struct Handler {
    seam: Seam,
    route: &'static RouteSpec,
    future: Guarded,
}

type Guarded = CatchUnwind<AssertUnwindSafe<BoxFuture<'static, Response>>>;

impl HandlerFuture {
    /// Reads the arguments of a call before `run` runs the handler.
    pub fn with_arguments<F, Fut>(call: Call, run: F) -> Self
    where
        F: FnOnce(Call) -> Fut,
        Fut: Future<Output = Response> + Send + 'static,
    {
        let entering = call.entering();
        let (seam, handler) = (Arc::clone(call.entry.seam()), call.route.handler());
        let answer = AssertUnwindSafe(run(call)).catch_unwind();
        Self::waiting(entering.run(async move {
            answer.await.unwrap_or_else(|_panic| {
                // No turn is held before the handler, whose own panics end there: nothing is torn.
                tracing::error!(
                    target: "pinned::host",
                    instance_id = seam.id(),
                    namespace = seam.namespace(),
                    handler,
                    "an argument of a handler panicked"
                );
                internal_error()
            })
        }))
    }

    pub(crate) fn ready(response: Response) -> Self {
        Self(State::Ready(Some(Box::new(response))))
    }

    pub(crate) fn waiting(future: impl Future<Output = Response> + Send + 'static) -> Self {
        Self(State::Waiting(Box::pin(future)))
    }

    /// The work of a handler that has begun.
    pub(crate) fn begun(
        seam: Seam,
        route: &'static RouteSpec,
        future: impl Future<Output = Response> + Send + 'static,
    ) -> Self {
        let future: BoxFuture<'static, Response> = Box::pin(future);
        Self(State::Begun(Some(Handler {
            seam,
            route,
            future: AssertUnwindSafe(future).catch_unwind(),
        })))
    }
}

impl Future for HandlerFuture {
    type Output = Response;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let state = &mut self.get_mut().0;
        if let State::Begun(handler) = state {
            let Some(mut handler) = handler.take() else {
                return Poll::Ready(internal_error());
            };
            match handler.future.poll_unpin(cx) {
                Poll::Ready(Ok(response)) => match handler.frontier() {
                    None => return Poll::Ready(response),
                    Some(frontier) => *state = State::confirming(&frontier, response),
                },
                Poll::Ready(Err(_panic)) => return Poll::Ready(handler.panicked()),
                Poll::Pending => {
                    let frontier = handler.frontier();
                    *state = State::Moved(handler.move_to_task(), frontier);
                }
            }
        }
        if let State::Moved(answer, frontier) = state {
            let Ok(response) = ready!(answer.poll_unpin(cx)) else {
                return Poll::Ready(Refusal::Aborted.into_response());
            };
            match frontier.take() {
                None => return Poll::Ready(response),
                Some(frontier) => *state = State::confirming(&frontier, response),
            }
        }
        match state {
            State::Ready(response) => Poll::Ready(unboxed(response.take())),
            State::Waiting(future) => future.as_mut().poll(cx),
            State::Confirming(wait, response) => {
                // D15.4: never a success after a failure whose outcome is not known.
                Poll::Ready(match ready!(wait.poll_unpin(cx)) {
                    Ok(()) => unboxed(response.take()),
                    Err(failed) => failed.into_response(),
                })
            }
            State::Moved(..) | State::Begun(_) => Poll::Ready(internal_error()),
        }
    }
}

impl State {
    /// The handler has ended, and so has its turn: others run while its effects become durable.
    fn confirming(frontier: &Frontier, response: Response) -> Self {
        let response = Some(Box::new(response));
        Self::Confirming(frontier.wait_for(frontier.position()), response)
    }
}

/// The answer that waited; there is none for whoever asks again.
fn unboxed(response: Option<Box<Response>>) -> Response {
    response.map_or_else(internal_error, |response| *response)
}

impl Handler {
    /// The log of the instance, where the answer waits for it.
    fn frontier(&self) -> Option<Frontier> {
        match self.route.is_durable() {
            true => self.seam.frontier().ok(),
            false => None,
        }
    }

    fn panicked(&self) -> Response {
        Arc::clone(&self.seam).abort_after_panic(self.route.handler());
        internal_error()
    }

    fn move_to_task(mut self) -> oneshot::Receiver<Response> {
        let (answer, response) = oneshot::channel();
        let domain = self.seam.domain().clone();
        domain.spawn(async move {
            let outcome = tokio::select! {
                biased;
                outcome = &mut self.future => Some(outcome),
                () = self.seam.cut_off(WorkClass::Handler) => None,
            };
            let response = match outcome {
                Some(Ok(response)) => response,
                Some(Err(_panic)) => self.panicked(),
                None => {
                    // The handler's cleanup runs before its client hears of it (H5.3).
                    drop(self);
                    Refusal::Aborted.into_response()
                }
            };
            // A client that has left drops the answer, and with it a body that only it would have read.
            let _ = answer.send(response);
        });
        response
    }
}
