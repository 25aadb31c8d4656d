//! The worker watches itself: a runtime that stalls, or a router that hangs, turns it unready.
//!
//! Nothing of a stalled runtime runs, so two watch each other. A task of the runtime asks the worker's own router, and leaves a
//! [pulse](health::Health::pulse) each time it runs; a thread beside the runtime looks after the pulse, and answers probes on a
//! port of its own where one was asked for.

mod asking;
mod health;
mod readiness;
mod routes;
mod settings;
mod watchdog;

pub(super) use asking::{Ask, keep_asking};
pub(super) use health::Health;
pub(super) use readiness::is_wedged;
pub(super) use settings::Probing;
pub(super) use watchdog::Watchdog;

pub use readiness::Unready;
pub use settings::SelfProbe;
