//! The harness, shown on a worker of its own.

mod clients;
mod conformance;
mod instances;
mod ledger;
mod observing;
mod room;
mod servers;
mod sim;
mod sim_nodes;
mod sim_processes;
mod sim_stores;
mod sockets;
mod stand_ins;
mod waking;
