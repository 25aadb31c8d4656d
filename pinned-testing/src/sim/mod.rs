//! The simulated world: virtual time, seeded randomness, one schedule per seed.
//!
//! [`Sim::run`] runs a test in a world of its own. What the test starts, and all of `pinned` that it hands
//! [`Sim::domain`] to, takes its time, tasks, randomness and tokens from there:
//!
//! - Time stands still while anything is runnable, and then jumps to the earliest deadline (S1.4). A day costs nothing.
//! - Deadlines due at the same instant fire in an order that the seed draws; runnable tasks run first come, first
//!   served (S1.5). One seed is one trace; a seed that fails fails again.
//! - A run in which everything waits and nothing can come is a deadlock and fails, and so does one that goes on for
//!   longer than its horizon (S1.7).
//!
//! ```
//! use std::time::Duration;
//! use pinned_testing::sim::Sim;
//!
//! let slept = Sim::run(7, |sim| async move {
//!     let domain = sim.domain();
//!     let before = domain.monotonic();
//!     domain.sleep(Duration::from_secs(3600)).await;
//!     domain.monotonic() - before
//! });
//! assert_eq!(slept, Duration::from_secs(3600));
//! ```
//!
//! - What [`Sim::process`] starts can be crashed alone, at any point, over a [`SimStore`] whose [`SimDisk`] stays; a
//!   [`Node`] is a whole worker of that kind (S3).
//!
//! Timers of tokio itself, threads and sockets are outside: the simulation does not wait for them.

mod backend;
mod failure;
mod node;
mod options;
mod process;
mod run;
mod sleep;
mod store;
mod trace;
mod world;

pub use failure::SimFailure;
pub use node::{Node, NodeError};
pub use options::SimOptions;
pub use process::{Crashed, SimProcess};
pub use run::Sim;
pub use store::{
    BadSchedule, LoggedOp, OpName, SimDisk, SimOp, SimOutcome, SimSchedule, SimStore, StoreFailed,
};
pub use trace::TraceEvent;
