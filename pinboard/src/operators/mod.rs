//! What operators ask of the registry (P3).
//!
//! [`Operators`] is the service, as plain async functions; [`router`] puts HTTP in front of it, and the routes that need no
//! token: `/healthz`, `/readyz`. What it answers is in types of its own, which the command line reads again.

pub mod bodies;
mod drain;
mod events;
mod figures;
mod health;
mod overview;
mod probes;
mod readiness;
mod router;
mod service;
mod stats;
mod wind_down;
mod workers;

pub use drain::DrainAnswer;
pub use figures::{Connections, Figures, NodeFigures, RoundTrips};
pub use health::{Health, LeaseHealth, QuarantineHealth, StoreHealth};
pub use overview::{NamespaceCount, Overview};
pub use readiness::{NodeState, Readiness};
pub use router::router;
pub use service::{Operators, OperatorsOptions};
pub use stats::{StatsRow, StatsTable};
pub use workers::{WorkerRow, WorkersTable};
