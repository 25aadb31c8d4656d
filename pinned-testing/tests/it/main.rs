//! The harness, shown on a worker of its own.

mod clients;
mod conformance;
mod instances;
mod observing;
mod room;
mod sim;
mod sockets;
mod stand_ins;
mod waking;
