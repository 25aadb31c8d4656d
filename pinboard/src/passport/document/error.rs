//! What is wrong with a document, and where.

use std::fmt;

/// A place in a JSON document, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::passport) struct Malformed {
    pub(super) path: String,
    pub(super) expected: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.expected)
    }
}

/// `PINBOARD_PASSPORT` cannot be used: where in it, and what was expected there. Never shows a value of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PINBOARD_PASSPORT is invalid: {0}")]
pub struct PassportError(pub(super) Malformed);

impl PassportError {
    /// The place, such as `providers[0].keys[1].token`; empty when it is the whole document.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// What was expected there.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.0.expected
    }
}
