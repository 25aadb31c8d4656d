//! What a node has been told.

use std::time::Duration;

/// What a node has been told, beside its store, its passport and where it listens (P1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// How long a session lives after its last heartbeat (`PINBOARD_LEASE_TTL_MS`).
    pub lease_ttl: Duration,
    /// How often this node looks after what changes by itself (`PINBOARD_SWEEP_INTERVAL_MS`).
    pub sweep_interval: Duration,
    /// Over how many hash slots the placements are spread (`PINBOARD_SHARDS`).
    pub shards: u16,
    /// The epoch of the fleet license (`PINBOARD_EPOCH`).
    pub epoch: u64,
    /// One node that nobody else shares the store with: a shorter quarantine (P4.4).
    pub dev: bool,
    /// The most connections that are held, clients' and upgraded ones (`PINBOARD_MAX_CONNECTIONS`).
    pub max_connections: usize,
    /// How many lanes the server has: threads that each have connections of their own (`PINBOARD_LANES`). One
    /// where the runtime is the program's own.
    pub lanes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_ttl: Duration::from_secs(15),
            sweep_interval: Duration::from_secs(1),
            shards: 16,
            epoch: 0,
            dev: false,
            max_connections: 10_000,
            lanes: 1,
        }
    }
}
