//! What can go wrong with a store.

use std::error::Error;

/// An operation of the store did not succeed. It may or may not have taken effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store does not answer, or lost the connection: trying again later may help.
    #[error("the registry store does not answer")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// The store answered something that this version does not understand, or refuses what this version needs: trying
    /// again is no use.
    #[error("the registry store cannot be used: {0}")]
    Unusable(String),
}

impl StoreError {
    /// Whether trying again later may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// The store does not answer.
    pub fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into())
    }
}
