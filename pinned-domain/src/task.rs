//! Spawning, and the handle to what was spawned.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::handle::World;
use crate::{Domain, SpawnedTask};

/// Why a task has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The task was aborted, or its runtime went away, before it was done.
    #[error("the task was cancelled")]
    Cancelled,
    /// The task panicked.
    #[error("the task panicked: {message}")]
    #[non_exhaustive]
    Panicked {
        /// What the panic said, where it said anything.
        message: String,
    },
}

impl TaskError {
    /// Whether the task was aborted rather than at fault.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
    }

    fn from_panic(payload: &(dyn Any + Send)) -> Self {
        Self::Panicked {
            message: panic_message(payload).to_owned(),
        }
    }
}

/// What a panic said; panics with something other than text say nothing.
///
/// `payload` is what [`catch_unwind`](std::panic::catch_unwind) gives.
///
/// ```
/// # use pinned_domain::panic_message;
/// let panic = std::panic::catch_unwind(|| panic!("no luck")).expect_err("it panics");
/// assert_eq!(panic_message(&*panic), "no luck");
/// ```
#[must_use]
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// A task started by [`Domain::spawn`]: await it for its result. Dropping it lets the task run on.
///
/// # Panics
/// When polled again after it gave its result.
///
/// # Cancel safety
/// Awaiting `&mut handle` is cancel safe.
pub struct TaskHandle<T> {
    inner: Inner<T>,
}

enum Inner<T> {
    Tokio(JoinHandle<T>),
    /// There was no runtime to run it.
    Dropped,
    Custom {
        result: oneshot::Receiver<Result<T, TaskError>>,
        task: Box<dyn SpawnedTask>,
    },
}

impl<T> TaskHandle<T> {
    /// Asks for the task to be dropped at its next await; does nothing once it has ended.
    pub fn abort(&self) {
        match &self.inner {
            Inner::Tokio(task) => task.abort(),
            Inner::Dropped => {}
            Inner::Custom { task, .. } => task.abort(),
        }
    }

    /// Whether the task has ended, in whichever way.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.inner {
            Inner::Tokio(task) => task.is_finished(),
            Inner::Dropped => true,
            Inner::Custom { task, .. } => task.is_finished(),
        }
    }
}

impl<T> Future for TaskHandle<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match &mut self.inner {
            Inner::Tokio(task) => {
                ready!(task.poll_unpin(cx)).map_err(|error| match error.try_into_panic() {
                    Ok(payload) => TaskError::from_panic(&*payload),
                    Err(_) => TaskError::Cancelled,
                })
            }
            Inner::Dropped => Err(TaskError::Cancelled),
            // The sender goes away unused only when the task is dropped unfinished.
            Inner::Custom { result, .. } => {
                ready!(result.poll_unpin(cx)).unwrap_or(Err(TaskError::Cancelled))
            }
        })
    }
}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle")
            .field("finished", &self.is_finished())
            .finish()
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the domain is where the ban on direct spawning ends"
)]
impl Domain {
    /// Starts `future` as a task of its own.
    ///
    /// On the real domain, outside a tokio runtime, there is nowhere for it to run: it is dropped, and its handle says
    /// [`TaskError::Cancelled`]. So a guard that is dropped after its runtime has ended does not panic.
    ///
    /// ```
    /// # use pinned_domain::Domain;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let task = Domain::real().spawn(async { 6 * 7 });
    /// assert_eq!(task.await, Ok(42));
    /// # }
    /// ```
    pub fn spawn<F>(&self, future: F) -> TaskHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let inner = match &self.world {
            World::Real(_) => match Handle::try_current() {
                Ok(runtime) => Inner::Tokio(runtime.spawn(future)),
                Err(_) => Inner::Dropped,
            },
            World::Custom(backend) => {
                let (sender, result) = oneshot::channel();
                let task = backend.spawn(Box::pin(async move {
                    // As in tokio: what a panic left behind is reachable only through what the task shared.
                    let outcome = AssertUnwindSafe(future).catch_unwind().await;
                    let outcome = outcome.map_err(|payload| TaskError::from_panic(&*payload));
                    // Nobody listens any more when the handle is dropped.
                    let _ = sender.send(outcome);
                }));
                Inner::Custom { result, task }
            }
        };
        TaskHandle { inner }
    }
}
