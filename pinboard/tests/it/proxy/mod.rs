//! Tests of `proxy`.

mod bodies;
mod callers;
mod footprint;
mod headers;
mod http2;
mod metrics;
mod refusals;
pub(crate) mod rig;
mod targets;
mod upgrades;
