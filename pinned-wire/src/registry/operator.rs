//! What operators send (P3).

use serde::{Deserialize, Serialize};

use super::Deadline;

/// `POST /registry/drain`: takes a worker out of placement, for good or with a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainOrder {
    /// The worker.
    pub client_id: String,
    /// When it must be empty; `null` cordons.
    pub deadline: Deadline,
}

/// `POST /registry/undrain`: takes such an order back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndrainOrder {
    /// The worker.
    pub client_id: String,
}

/// `POST /registry/wind_down`: asks the holder of one id, or of all ids of a namespace, to let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WindDownOrder {
    /// The namespace, with the slash.
    pub namespace: String,
    /// One id; every id of the namespace without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When it must have let go; `null` revokes.
    pub deadline: Deadline,
    /// The environment, in hostname-aware mode only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
}

/// What came of a [`WindDownOrder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindDownQueued {
    /// Whether somebody holds the id; or how many ids of the namespace somebody holds.
    pub queued: Queued,
}

/// One id, or a number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Queued {
    /// Whether the id that was named has a holder who will be told.
    One(bool),
    /// How many ids of the namespace have.
    Many(u64),
}
