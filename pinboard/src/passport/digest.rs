//! Tokens as they are kept.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

/// What is kept of a token: enough to know it again, and not the token.
///
/// All digests are of one length, so a comparison tells nothing of the length of a token either.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(super) fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Whether both are of one token, found out in a time that does not depend on the answer.
    pub(super) fn is(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl fmt::Debug for TokenDigest {
    /// A digest is no token, but a guess can be checked against it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(..)")
    }
}
