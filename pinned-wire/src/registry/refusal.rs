//! What the registry says when it refuses.

use serde::{Deserialize, Serialize};

/// The body of an answer that is not 200.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Refusal {
    /// What was refused and why, for people.
    #[serde(default)]
    pub error: String,
    /// The session is unknown or has expired: register again (W4.7).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reregister: bool,
    /// Another worker has displaced this one for good (W4.8).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
}

impl Refusal {
    /// A plain refusal.
    #[must_use]
    pub fn new(error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            ..Self::default()
        }
    }

    /// Asks the worker to register again.
    #[must_use]
    pub fn reregister(error: impl Into<String>) -> Self {
        Self {
            reregister: true,
            ..Self::new(error)
        }
    }

    /// Tells the worker that it has been displaced.
    #[must_use]
    pub fn superseded(error: impl Into<String>) -> Self {
        Self {
            superseded: true,
            ..Self::new(error)
        }
    }
}
