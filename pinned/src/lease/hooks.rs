//! What a lease calls when its health changes.

use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::domain::panic_message;
use crate::error::BoxError;

/// What a hook may return: nothing, or a `Result` whose error is counted and logged.
pub trait HookOutcome {
    /// The outcome as a result.
    ///
    /// # Errors
    /// What the hook failed with.
    fn into_result(self) -> Result<(), BoxError>;
}

impl HookOutcome for () {
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> HookOutcome for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// One hook, cheap to clone so that it can be called with no lock held.
#[derive(Clone)]
pub(super) struct Hook {
    name: &'static str,
    call: Arc<dyn Fn() -> Result<(), BoxError> + Send + Sync>,
}

impl Hook {
    pub(super) fn new<R: HookOutcome>(
        name: &'static str,
        call: impl Fn() -> R + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            call: Arc::new(move || call().into_result()),
        }
    }

    /// Calls the hook; whatever it does wrong ends here (W7.6).
    pub(super) fn run(&self) {
        // A hook sees none of the lease's state half-done, so unwinding through it breaks nothing of ours.
        match catch_unwind(AssertUnwindSafe(|| (self.call)())) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.failed(&*error),
            Err(payload) => self.panicked(&*payload),
        }
    }

    fn failed(&self, error: &(dyn Error + 'static)) {
        self.count();
        tracing::error!(target: "pinned::lease", hook = self.name, error, "lease callback failed");
    }

    fn panicked(&self, payload: &(dyn Any + Send)) {
        self.count();
        tracing::error!(target: "pinned::lease", hook = self.name, panic = panic_message(payload), "lease callback panicked");
    }

    fn count(&self) {
        metrics::counter!("pinned_callback_failures_total", "hook" => self.name).increment(1);
    }
}
