//! pinboard, the control plane of pinned: a registry of workers, placement of ids, and the proxy in front of them.

pub mod events;
pub mod passport;
pub mod placement;
pub mod settings;
pub mod store;
pub mod upstream;
pub mod workers;
