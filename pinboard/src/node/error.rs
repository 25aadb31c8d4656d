//! Why a node did not start.

use crate::config::MalformedDsn;
use crate::passport::InvalidToken;
use crate::store::StoreError;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The registry store cannot be used, or does not answer.
    #[error("the registry store cannot be used")]
    Store(#[from] StoreError),
    /// The URL of the store is none.
    #[error(
        "that is no URL of a Redis: redis://, rediss:// or redis+cluster:// and a host are expected"
    )]
    RedisUrl,
    /// The scanner's DSN is none.
    #[error(transparent)]
    Scanner(#[from] MalformedDsn),
    /// The dev token is none.
    #[error(transparent)]
    Token(#[from] InvalidToken),
    /// A node that shares its store has no passport: nobody could register or operate anything.
    #[error("a passport is needed, unless the node keeps the fleet in memory")]
    NoPassport,
    /// The listener cannot be used.
    #[error("cannot listen")]
    Listen(#[source] std::io::Error),
    /// Requests to workers and other servers cannot be made.
    #[error("cannot make requests: {0}")]
    Requests(String),
}
