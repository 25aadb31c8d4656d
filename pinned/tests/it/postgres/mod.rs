//! The store on PostgreSQL (`spec/durability.md`, D8 to D12 and D19), against a private server.

#![allow(
    clippy::disallowed_methods,
    reason = "a server of its own keeps real time, and tests stand outside the domain"
)]

mod batching;
mod contract;
mod fast;
mod faults;
mod hold;
mod order;
mod pool;
mod protocol;
mod proxy;
mod rig;
mod schema;
mod values;
