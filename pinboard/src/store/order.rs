//! Orders of operators.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{PlacementKey, SessionId};

/// An operator's order to a worker, kept by client id (P3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// No new placements, until it is taken back.
    Cordon,
    /// Empty by then; kept for seven days after.
    By {
        /// What is left until then; zero once it has passed.
        left: Duration,
    },
}

/// What the store remembers of a worker beyond its sessions, so that an order reaches one that is down: kept for seven
/// days after the latest registration, and for as long as an order stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientRecord {
    /// The worker process.
    pub client_id: String,
    /// What it served.
    pub namespaces: Vec<Arc<str>>,
    /// Its routing identity.
    pub hostname: Arc<str>,
    /// Its data identities: its own, and those of single namespaces.
    pub envs: Vec<Arc<str>>,
}

/// A control message to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageBody {
    /// The instance.
    pub key: PlacementKey,
    /// What is left until its deadline, from now; `None` revokes.
    pub deadline: Option<Duration>,
}

/// A control message that waits to be confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedMessage {
    /// What a confirmation names: unique in its session.
    pub id: String,
    /// The message, its deadline counted down by the time that it has waited.
    pub body: MessageBody,
}

/// A row that was fenced, and whom to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedRow {
    /// The holder.
    pub session: SessionId,
    /// Its epoch.
    pub epoch: u64,
}
