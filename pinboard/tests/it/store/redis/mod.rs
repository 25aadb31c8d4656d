//! The store on Redis.

mod claims;
mod cluster;
mod conformance;
mod faults;
mod harness;
mod hostile;
mod scripts;
mod secrets;
mod shards;
mod support;
mod tls;
mod tracking;
mod unfit;
