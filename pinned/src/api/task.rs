//! Background tasks bound to an instance.

use std::error::Error;

use crate::error::{BoxError, causes};
pub use crate::lease::EvictionRequested;

/// A task that `ctx.spawn` started. Dropping the handle lets the task run on.
pub(crate) type TaskHandle = crate::domain::TaskHandle<()>;

/// How a task ended.
#[doc(hidden)]
#[derive(Debug)]
pub enum TaskEnd {
    Done,
    Yielded,
    Failed(BoxError),
}

/// What a spawned task may return: nothing, or a result whose error is logged (H7.2).
#[diagnostic::on_unimplemented(
    message = "a task of an instance returns nothing or `Result<(), E>`, not `{Self}`",
    label = "unsupported task output"
)]
pub trait TaskOutput: Send + 'static {
    #[doc(hidden)]
    fn into_end(self) -> TaskEnd;
}

impl TaskOutput for () {
    fn into_end(self) -> TaskEnd {
        TaskEnd::Done
    }
}

impl<E: Into<BoxError> + Send + 'static> TaskOutput for Result<(), E> {
    fn into_end(self) -> TaskEnd {
        match self.map_err(Into::into) {
            Ok(()) => TaskEnd::Done,
            Err(error) if asks_to_yield(error.as_ref()) => TaskEnd::Yielded,
            Err(error) => TaskEnd::Failed(error),
        }
    }
}

/// Whether an eviction request stands anywhere in the chain of causes.
fn asks_to_yield(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|error| error.is::<EvictionRequested>())
}
