//! The world as this crate sees it: clocks, sleeping, spawning, randomness and tokens.
//!
//! Nothing in the crate asks the operating system for the time, or the runtime for a task; it asks the [`Domain`]
//! it was given. In production that is [`Domain::real`]; a simulation hands in its own [`DomainBackend`] and every
//! rule of hosting, leases and trays then runs unchanged under its clock and its seed.
//!
//! ```
//! use std::time::Duration;
//! use pinned::domain::Domain;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let domain = Domain::real();
//! let before = domain.monotonic();
//! domain.sleep(Duration::from_millis(1)).await;
//! assert!(domain.monotonic() > before);
//! # }
//! ```

mod backend;
mod clock;
mod event;
mod handle;
mod rng;
mod task;
#[cfg(test)]
mod tests;

pub use backend::{DomainBackend, SpawnedTask};
pub use clock::Elapsed;
pub(crate) use clock::{FAR_FUTURE, saturating_add};
pub use event::Event;
pub(crate) use event::until;
pub use handle::Domain;
pub use rng::{EmptyLabel, Rng, RngStreams};
pub(crate) use task::panic_message;
pub use task::{TaskError, TaskHandle};
