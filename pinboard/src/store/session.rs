//! Registrations of worker processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pinned_wire::registry::{Secret, Takeover};
use serde::{Deserialize, Serialize};

use super::{Drain, QueuedMessage};

/// One registration of one worker process: 32 lower-case hex digits that nobody can guess (P2.4). Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Takes `text` as it is.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a worker said of itself when it registered, and what was found out then. It does not change during a session,
/// except for what a [`SessionUpdate`] names.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// The worker process.
    pub client_id: String,
    /// The key of its attestations.
    pub secret: Secret,
    /// What it serves, in the order in which it said so.
    pub namespaces: Vec<Arc<str>>,
    /// Where requests are sent.
    pub advertise_url: String,
    /// The addresses behind that URL that were allowed when it was last proved; no other is ever dialled.
    pub addresses: Vec<SocketAddr>,
    /// Its routing identity; `*` in single mode.
    pub hostname: Arc<str>,
    /// Its data identity; `*` in single mode.
    pub env: Arc<str>,
    /// Other data identities, for single namespaces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub envs: BTreeMap<Arc<str>, Arc<str>>,
    /// What a request from another hostname does to its ids.
    #[serde(default)]
    pub takeover: Takeover,
    /// The epoch of its bindings.
    #[serde(default)]
    pub binding_epoch: u64,
    /// When it registered, in milliseconds since the Unix epoch.
    pub registered_at: u64,
    /// What it last said.
    #[serde(flatten)]
    pub update: SessionUpdate,
}

impl SessionRecord {
    /// The environment of one of its namespaces.
    #[must_use]
    pub fn env_of(&self, ns: &str) -> &Arc<str> {
        self.envs.get(ns).unwrap_or(&self.env)
    }

    /// Whether it serves `ns`.
    #[must_use]
    pub fn serves(&self, ns: &str) -> bool {
        self.namespaces.iter().any(|served| &**served == ns)
    }
}

/// What each heartbeat says anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionUpdate {
    /// Free memory in MiB.
    pub headroom: u64,
    /// Whether the worker drains of its own accord.
    pub draining: bool,
    /// Whether its advertised URL answered for it when last asked.
    pub reachable: bool,
    /// The addresses behind that URL, when they have been found out anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Vec<SocketAddr>>,
}

/// A session to begin.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its fresh id.
    pub id: SessionId,
    /// The worker.
    pub record: SessionRecord,
}

/// What the store knows of the worker behind a session that has just begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The earlier session of the same client, if it still lived. It goes on until it is ended, so that its rows can
    /// move first.
    pub earlier: Option<SessionId>,
    /// The operator's order for this client.
    pub drain: Option<Drain>,
}

/// A heartbeat that has been checked.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// Which session.
    pub session: SessionId,
    /// What it says.
    pub update: SessionUpdate,
    /// The control messages that it confirms.
    pub acks: Vec<String>,
}

/// What came of a [`Heartbeat`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeartbeatOutcome {
    /// The session lives for a lease TTL from now.
    Renewed {
        /// The operator's order for this client.
        drain: Option<Drain>,
        /// What the worker has not confirmed yet, in order.
        messages: Vec<QueuedMessage>,
    },
    /// The session is not known: it has ended, or expired, or the store has lost it.
    Unknown,
    /// A worker with a higher binding epoch has displaced this one (P9.2).
    Superseded,
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndMode {
    /// Its rows are free at once: the worker has said that nothing lives there.
    Now,
    /// It takes no more heartbeats or ids, but its rows are free only when its lease would have run out: the worker may
    /// be alive.
    AtExpiry,
}

/// A session as the store has it now.
#[derive(Clone, Debug)]
pub struct SessionView {
    /// Which.
    pub id: SessionId,
    /// What it said of itself, with its latest update applied.
    pub record: SessionRecord,
    /// The operator's order for its client.
    pub drain: Option<Drain>,
    /// What is left of its lease, by the store's clock.
    pub expires_in: Duration,
    /// When its last heartbeat was accepted, in milliseconds since the Unix epoch.
    pub last_heartbeat_at: u64,
    /// Whether it has ended by [`EndMode::AtExpiry`]: it takes no ids.
    pub ending: bool,
}

/// What has happened to sessions since a version of their list.
#[derive(Clone, Debug, Default)]
pub struct SessionChanges {
    /// The version that this brings a reader to.
    pub version: u64,
    /// Whether this is the whole list: what is not in it does not live.
    pub complete: bool,
    /// Sessions that are new or changed.
    pub changed: Vec<SessionView>,
    /// Sessions that have ended.
    pub ended: Vec<SessionId>,
    /// Every `(env, ns)` that a worker ever served on this store; given with a complete list, and when it has grown.
    pub namespaces: Option<BTreeSet<(Arc<str>, Arc<str>)>>,
}
