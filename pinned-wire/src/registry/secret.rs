//! A secret that does not show.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Text that no log and no `Debug` shows.
///
/// ```
/// use pinned_wire::registry::Secret;
///
/// let secret = Secret::new("0f1e2d");
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// assert_eq!(secret.expose(), "0f1e2d");
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for signing, sending and comparing.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `given` is this secret, found out in a time that depends on the lengths alone.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        crate::attestation::same_secret(&self.0, given)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
