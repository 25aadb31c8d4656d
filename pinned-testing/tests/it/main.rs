//! The harness, shown on a worker of its own.

mod clients;
mod room;
mod sockets;
mod stand_ins;
