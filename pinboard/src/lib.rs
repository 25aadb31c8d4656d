//! pinboard, the control plane of pinned: a registry of workers, placement of ids, and the proxy in front of them.

pub mod cli;
pub mod config;
pub mod events;
pub mod logs;
pub mod metrics;
pub mod node;
pub mod operators;
pub mod passport;
pub mod placement;
pub mod proxy;
pub mod scanner;
pub mod server;
pub mod sessions;
pub mod settings;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod upstream;
pub mod workers;

pub use node::Pinboard;
