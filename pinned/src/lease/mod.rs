//! The worker's leave to serve, as long as the control plane keeps acknowledging it.
//!
//! Every acknowledgement of a heartbeat renews the one [`Lease`] of a worker for a term. When none comes, the lease
//! turns *unhealthy* a [`buffer`](Lease::buffer) before its deadline, where new activations stop, and is *expired* at
//! the deadline, where everything stops: by then the control plane may have given the ids to another worker. A
//! worker without a control plane never gets an acknowledgement, and its lease is healthy for ever.
//!
//! ```
//! use std::time::Duration;
//! use pinned::{domain::Domain, lease::Lease};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let domain = Domain::real();
//! let lease = Lease::new(domain.clone());
//! assert!(lease.healthy() && lease.expires_at().is_none());
//!
//! // Renewals count from when the heartbeat was sent, so that a slow answer never lengthens the term.
//! let sent = domain.monotonic();
//! lease.renewed(Duration::from_secs(30), Some(sent));
//! assert_eq!(lease.expires_at_monotonic(), Some(sent + Duration::from_secs(30)));
//! # }
//! ```

mod edges;
mod eviction;
mod handle;
mod hooks;
mod settings;
mod state;
#[cfg(test)]
mod tests;

pub use eviction::EvictionRequested;
pub use handle::Lease;
pub use hooks::HookOutcome;
pub use settings::{LeaseSettings, ZeroBuffer};
