//! Which worker a request goes to (P4).
//!
//! [`Placement`] answers one question, *who holds this id*, from what this node knows or by one round trip to the store. What it
//! knows it forgets when the store says that the row has changed, when the holder's lease ends, and when the holder refuses;
//! a guess that is stale all the same is harmless, because the worker's epoch fence refuses it (P5.7).

mod choose;
mod claim;
mod flight;
mod holder;
mod known;
mod listen;
mod moving;
mod placed;
mod refusal;
mod service;

pub use placed::{NotPlaced, Placed, WorkerRefusal};
pub use service::Placement;
