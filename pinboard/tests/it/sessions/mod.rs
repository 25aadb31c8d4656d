//! Tests of `sessions`.

mod bodies;
mod claims;
mod concurrent;
mod deregister;
mod heartbeat;
mod hostile;
mod messages;
mod proof;
mod quarantine;
mod reclaim;
mod refused;
mod register;
mod release;
pub(crate) mod rig;
mod store_away;
mod wire;
