//! The registration of a worker: one loop that registers, and then sends heartbeats (W3, W4).

mod heartbeat;
mod register;
mod run;
mod state;

pub(crate) use state::Registration;
