//! What a node counts, as its operators see it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What this node has counted since it started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFigures {
    /// How requests found their holders, by outcome (P11).
    pub resolutions: BTreeMap<String, u64>,
    /// The connections that it proxies.
    pub connections: Connections,
    /// How long operations of the store took, by their names.
    pub round_trips: BTreeMap<String, RoundTrips>,
}

/// Connections of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Open now.
    pub now: u64,
    /// Since the node started.
    pub total: u64,
}

/// How long one operation of the store took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoundTrips {
    /// How often.
    pub count: u64,
    /// On average, in milliseconds.
    pub mean_ms: f64,
    /// At most, in milliseconds.
    pub max_ms: f64,
}

/// Reads what this node has counted.
pub trait Figures: Send + Sync + 'static {
    /// As of now.
    fn figures(&self) -> NodeFigures;
}
