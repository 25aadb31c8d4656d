//! The workers of the fleet, as this node sees them.
//!
//! [`Workers`] reads the sessions from the store, again and again, and answers who lives without asking anyone. A [`Worker`]
//! is one session: it stays the same object for as long as the session lives at the same addresses, so that the
//! connections to it, its tokens and what was placed on it are kept. What a node believes of a lease is never more than
//! the store knew: it ends counted from before the read.
//!
//! The [`Sweeper`] removes what dead sessions leave behind, on one node at a time.

mod change;
mod directory;
mod refresh;
mod snapshot;
mod sweeper;
mod token;
mod worker;

pub use change::WorkerChange;
pub use directory::{NotRefreshed, WorkerCounts, Workers};
pub use snapshot::Namespace;
pub use sweeper::{SWEEPER, Sweeper};
pub use worker::Worker;

pub(crate) use worker::Promise;
