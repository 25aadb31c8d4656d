//! Why a node did not start.

use crate::passport::InvalidToken;
use crate::store::StoreError;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The registry store cannot be used, or does not answer.
    #[error("the registry store cannot be used")]
    Store(#[from] StoreError),
    /// The dev token is none.
    #[error(transparent)]
    Token(#[from] InvalidToken),
    /// A node that shares its store has no passport: nobody could register or operate anything.
    #[error("a passport is needed, unless the node keeps the fleet in memory")]
    NoPassport,
    /// The listener cannot be used.
    #[error("cannot listen")]
    Listen(#[source] std::io::Error),
}
