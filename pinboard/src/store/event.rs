//! What has happened in the control plane.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One entry of the ring of events (P3.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its number: rising, without regard to which node it came from. Given by the store; 0 until then.
    #[serde(default)]
    pub seq: u64,
    /// When, in milliseconds since the Unix epoch, by the clock of the node that saw it.
    pub at: u64,
    /// What.
    pub kind: EventKind,
    /// The worker that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Arc<str>>,
    /// The session that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Arc<str>>,
    /// The environment that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Arc<str>>,
    /// The hostname that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Arc<str>>,
    /// The namespaces that it concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<Arc<str>>,
    /// The id that it concerns, of the one namespace in `namespaces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The placement epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// More, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What an [`Event`] tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A worker registered.
    Register,
    /// A session ended or expired.
    SessionLost,
    /// An id was placed.
    Placed,
    /// An id was taken from a dead or fenced holder.
    Replaced,
    /// An id was handed back.
    Released,
    /// An operator drains or cordons a worker.
    Drain,
    /// An operator took that back.
    Undrain,
    /// An operator asked for an id back, or revoked that.
    WindDown,
    /// A request of another hostname took an id.
    Takeover,
    /// A worker displaced others.
    Displaced,
    /// Nothing new is placed for a while.
    Quarantine,
}

/// Some of the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPage {
    /// In order.
    pub events: Vec<Event>,
    /// Where to go on from.
    pub next: u64,
}
