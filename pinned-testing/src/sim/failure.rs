//! How a simulation fails by itself.

use std::time::Duration;

/// A simulation that could not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimFailure {
    /// A deadlock: everything waits, and no timer is set (S1.7).
    #[error(
        "seed {seed}: deadlock at {at:?}: nothing is runnable and no timer is set, while {} wait",
        waiting.join(", ")
    )]
    #[non_exhaustive]
    Deadlock {
        /// The seed that replays it.
        seed: u64,
        /// The virtual time.
        at: Duration,
        /// The tasks that wait, by the names of the trace.
        waiting: Vec<String>,
    },
    /// The next deadline is beyond the horizon (S1.7).
    #[error("seed {seed}: {task} sleeps until {until:?}, beyond the horizon of {horizon:?}")]
    #[non_exhaustive]
    Horizon {
        /// The seed that replays it.
        seed: u64,
        /// The task with the earliest deadline.
        task: String,
        /// That deadline, in virtual time.
        until: Duration,
        /// The horizon.
        horizon: Duration,
    },
}
