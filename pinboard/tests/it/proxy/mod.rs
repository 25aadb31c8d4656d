//! Tests of `proxy`.

mod bodies;
mod callers;
mod headers;
mod refusals;
mod http2;
mod metrics;
pub(crate) mod rig;
mod targets;
mod upgrades;
