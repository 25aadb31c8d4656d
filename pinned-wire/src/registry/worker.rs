//! What workers send, and what they are answered (P2, W3, W4, W5).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Deadline, Secret};

/// `POST /registry/register` (W3.1 to W3.5).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Register {
    /// The worker process, for as long as it lives.
    pub client_id: String,
    /// The worker secret: the key of attestations.
    pub secret: Secret,
    /// The namespaces that it serves, with their slashes.
    pub namespaces: Vec<String>,
    /// Where requests for it are sent.
    pub advertise_url: String,
    /// Free memory in MiB.
    pub headroom: u64,
    /// Whether it drains of its own accord.
    pub draining: bool,
    /// What the registry asks the advertised URL.
    pub challenge: String,
    /// What that URL must answer.
    pub challenge_value: Secret,
    /// The identity for routing, in hostname-aware mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The identity of the data, in hostname-aware mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// Another `env` for single namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envs: Option<BTreeMap<String, String>>,
    /// What a request from another hostname does to an id placed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takeover: Option<Takeover>,
    /// The epoch of its bindings; a higher one displaces a lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The session that this process holds or has lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev_session_id: Option<String>,
    /// The instances that live in it, per namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<BTreeMap<String, Vec<String>>>,
    /// Whether the lease of that session had passed when this was sent: somebody else may hold the instances by now. Absent
    /// otherwise; a registry that does not know it ignores it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lapsed: bool,
}

/// What a request from another hostname of the same environment does to an id placed here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Takeover {
    /// Winds it down, and places it anew.
    #[default]
    WindDown,
    /// Is refused.
    Deny,
}

/// The answer to a [`Register`] that was accepted (W3.6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterAck {
    /// The new session.
    pub session_id: String,
    /// How long the lease runs, from when the register was sent, in milliseconds.
    pub expires_in_ms: u64,
    /// Whether an operator drains this worker.
    #[serde(default)]
    pub draining: bool,
    /// What is left until the operator's deadline, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_deadline: Option<f64>,
    /// Of the instances that were named, those that live elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duplicates: Vec<InstanceRef>,
}

/// One instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceRef {
    /// Its namespace, with the slash.
    pub ns: String,
    /// Its id.
    pub id: String,
}

/// `POST /registry/heartbeat` (W4.1).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// The session to renew.
    pub session_id: String,
    /// Free memory in MiB.
    pub headroom: u64,
    /// Whether it drains of its own accord.
    pub draining: bool,
    /// What is left until its own deadline, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_deadline: Option<f64>,
    /// What the registry asks the advertised URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
    /// What that URL must answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge_value: Option<Secret>,
    /// The control messages that it has applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acks: Option<Vec<String>>,
}

/// The answer to a [`Heartbeat`] that was accepted (W4.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatAck {
    /// How long the lease runs, from when the heartbeat was sent, in milliseconds.
    pub expires_in_ms: u64,
    /// Whether an operator drains this worker.
    #[serde(default)]
    pub draining: bool,
    /// What is left until the operator's deadline, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_deadline: Option<f64>,
    /// What the worker is asked to do, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<ControlMessage>,
}

/// Something that a worker is asked to do; delivered at least once, in order (W5.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ControlMessage {
    /// Let go of an instance.
    WindDown(WindDown),
}

/// The only [`ControlMessage`] there is (W5.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WindDown {
    /// What an acknowledgement names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<String>,
    /// The namespace; a worker that serves one only may be told without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<String>,
    /// The instance.
    pub id: String,
    /// When it must be gone, from receipt; `null` revokes.
    pub deadline: Deadline,
}

/// `POST /registry/release`: one item, or a list of them (P2.8, W3.11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Release {
    /// What workers of this edition send.
    Many(Vec<ReleaseItem>),
    /// A single item.
    One(ReleaseItem),
}

impl Release {
    /// The items.
    #[must_use]
    pub fn into_items(self) -> Vec<ReleaseItem> {
        match self {
            Self::Many(items) => items,
            Self::One(item) => vec![item],
        }
    }
}

/// A placement that a worker hands back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseItem {
    /// The session that holds it.
    pub session_id: String,
    /// The namespace, with the slash.
    pub namespace: String,
    /// The id.
    pub id: String,
    /// The placement epoch, in decimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
}

/// The answer to a [`Release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseAck {
    /// How many rows were freed.
    pub released: u64,
}

/// `POST /registry/deregister` (W3.16).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deregister {
    /// The session that ends.
    pub session_id: String,
}
