//! The world as pinned sees it: clocks, sleeping, spawning, randomness and tokens.
//!
//! Neither a worker nor its control plane asks the operating system for the time, or the runtime for a task; it asks
//! the [`Domain`] it was given. In production that is [`Domain::real`]; a simulation hands in its own
//! [`DomainBackend`] and every rule of hosting, leases and trays then runs unchanged under its clock and its seed.
//!
//! [`ErrorChain`] is how either of them writes an error to its log.
//!
//! ```
//! use std::time::Duration;
//! use pinned_domain::Domain;
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
mod error_chain;
mod event;
mod handle;
mod rng;
mod task;

pub use backend::{DomainBackend, SpawnedTask};
pub use clock::{Elapsed, FAR_FUTURE, saturating_add};
pub use error_chain::ErrorChain;
pub use event::{Event, until};
pub use handle::Domain;
pub use rng::{EmptyLabel, Rng, RngStreams};
pub use task::{TaskError, TaskHandle, panic_message};
