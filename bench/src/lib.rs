//! Speed, latency and memory of pinned, measured beside hand-written servers and published peers.
//!
//! Every server runs in a process of its own and is driven by the same load generator, in turns, so that a ratio
//! compares two servers and not two moments of a noisy machine. `README.md` lists the benches and their figures.

#![allow(
    clippy::disallowed_methods,
    reason = "a bench measures the real clock and real tasks"
)]

pub mod baseline;
pub mod compare;
pub mod cores;
pub mod counting;
pub mod dispatch;
pub mod load;
pub mod options;
pub mod pgbench;
pub mod pinned_server;
pub mod plain_sqlite;
pub mod proc;
pub mod proxied;
pub mod server;
pub mod sharded;
pub mod tray_load;

/// What every bench returns: any failure ends the run with its message.
pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
