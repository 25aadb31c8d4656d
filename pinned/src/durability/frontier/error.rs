//! Why a log confirms nothing any more.

use std::sync::Arc;

use crate::durability::store::{FenceLost, StoreError};
use crate::error::BoxError;

/// What ended a log (D16.1).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierFailure {
    /// A write to the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An effect of the instance's own code failed, or could not be enlisted.
    #[error("a durable effect failed")]
    Effect(#[source] BoxError),
    /// The instance was aborted while effects were on their way.
    #[error("the instance was aborted before its effects were durable")]
    Cancelled,
}

/// The durable log of an instance confirms nothing (any more).
///
/// As a response it is 503 with the outcome unknown: what was enlisted may or may not be durable (D15.4);
/// [`FrontierError::WithinAnother`] is 500.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierError {
    /// An effect failed while this waited for it, or for one after it.
    #[error("a durable effect of this instance failed; whether it took place is not known")]
    Failed(#[source] Arc<FrontierFailure>),
    /// An effect had failed before; nothing is enlisted or confirmed any more (D16.3).
    #[error("an earlier durable effect of this instance has failed")]
    Poisoned(#[source] Arc<FrontierFailure>),
    /// The instance has ended.
    #[error("this instance has ended")]
    Closed,
    /// The call came from within a segment of another instance, whose lock would be held meanwhile: two that did so
    /// towards each other would wait for each other for ever. Nothing was changed.
    #[error("this thread is in the middle of a segment of another instance")]
    WithinAnother,
}

impl FrontierError {
    /// What failed; `None` when nothing has.
    pub fn failure(&self) -> Option<&FrontierFailure> {
        match self {
            Self::Failed(failure) | Self::Poisoned(failure) => Some(failure),
            Self::Closed | Self::WithinAnother => None,
        }
    }

    /// The fence that a newer activation has put up, where that is why.
    pub fn fence_lost(&self) -> Option<&FenceLost> {
        match self.failure()? {
            FrontierFailure::Store(StoreError::FenceLost(lost)) => Some(lost),
            _ => None,
        }
    }
}
