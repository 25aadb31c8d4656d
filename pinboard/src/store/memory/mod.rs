//! The registry of a fleet that lives in one process.
//!
//! All state is one state machine behind one short lock, and every operation is one transition of it: what is checked and
//! what is then done cannot come apart. An operation takes a microsecond or so, requests for ids that a node knows make none,
//! and lists are gone through in pieces; more locks than one would buy nothing.
//!
//! Time is read under that lock, and what is due by then happens first. So expiry is exact without a timer: nobody ever
//! sees a session a moment longer than it lives.

mod changes;
mod claims;
mod clients;
mod epochs;
mod fleet;
mod messages;
mod reclaim;
mod rows;
mod session;
mod sessions;
mod state;
mod store;
mod sweep;
mod watch;

pub use store::{MemoryCopy, MemoryStore};
