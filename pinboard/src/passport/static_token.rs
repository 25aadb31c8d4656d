//! The provider `staticToken` (P7.2).

use subtle::ConditionallySelectable as _;

use super::Principal;
use super::digest::TokenDigest;

/// The longest token that is looked at, in bytes.
pub(super) const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The keys of all providers of this type, with every token that each has.
#[derive(Debug, Default)]
pub(super) struct StaticTokens {
    keys: Vec<Principal>,
    /// With the index of the key.
    tokens: Vec<(TokenDigest, u32)>,
}

/// A token that could not be sent, or not be told from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidToken {
    /// It is empty.
    #[error("a token must not be empty")]
    Empty,
    /// It has characters that do not survive a header, such as a newline at its end.
    #[error("a token must be visible ASCII characters, without spaces or line ends")]
    Characters,
    /// It is too long for a header.
    #[error("a token must have at most {MAX_TOKEN_BYTES} characters")]
    TooLong,
}

/// Checks that a token can be sent as one.
pub(super) fn check(token: &str) -> Result<(), InvalidToken> {
    if token.is_empty() {
        Err(InvalidToken::Empty)
    } else if token.len() > MAX_TOKEN_BYTES {
        Err(InvalidToken::TooLong)
    } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err(InvalidToken::Characters)
    } else {
        Ok(())
    }
}

impl StaticTokens {
    /// Adds a key with the tokens it has. They are other than those of all keys before.
    pub(super) fn add(&mut self, key: Principal, tokens: impl IntoIterator<Item = TokenDigest>) {
        let index = u32::try_from(self.keys.len()).expect("a document of so many keys is not read");
        self.keys.push(key);
        self.tokens
            .extend(tokens.into_iter().map(|token| (token, index)));
    }

    /// Whether no token at all is known.
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The name of the key that has the token already.
    pub(super) fn holder(&self, token: &TokenDigest) -> Option<&str> {
        self.find(token).map(|key| key.account.sub.as_str())
    }

    /// Whose token it is. Every token is compared, whichever it is and wherever it stands.
    pub(super) fn find(&self, token: &TokenDigest) -> Option<&Principal> {
        let mut found = u32::MAX;
        for (known, key) in &self.tokens {
            found.conditional_assign(key, known.is(token));
        }
        self.keys.get(usize::try_from(found).ok()?)
    }
}
