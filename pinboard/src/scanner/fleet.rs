//! What the scanner asks of the fleet.

use futures_util::future::BoxFuture;

use crate::metrics::names::wake;
use crate::placement::NotPlaced;
use crate::store::{PlacementKey, SessionId, StoreError};

/// Who holds an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The session.
    pub session: SessionId,
    /// The placement epoch.
    pub epoch: u64,
}

/// What came of one attempt to wake an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It lives there: 200.
    Awake(Holder),
    /// It is being activated: 202.
    Activating,
    /// A worker did not take it, and no other one did.
    Refused,
    /// It has no holder.
    NotPlaced(NotPlaced),
    /// Its holder does not answer.
    Unreachable,
    /// Its holder answered what no worker with durable parts answers to a wake.
    Failed {
        /// The status.
        status: u16,
    },
}

impl Attempt {
    /// How it is counted.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Awake(_) => wake::AWAKE,
            Self::Activating => wake::ACTIVATING,
            Self::Refused => wake::REFUSED,
            Self::NotPlaced(_) => wake::UNPLACED,
            Self::Unreachable | Self::Failed { .. } => wake::FAILED,
        }
    }
}

/// The registry does not answer.
#[derive(Debug, thiserror::Error)]
#[error("the registry does not answer")]
pub struct FleetAway(#[from] StoreError);

/// What the scanner asks of the fleet.
pub trait Fleet: Send + Sync + 'static {
    /// The live holder of an id, placing nothing.
    ///
    /// # Errors
    ///
    /// The registry does not answer.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    fn holder<'a>(
        &'a self,
        key: &'a PlacementKey,
    ) -> BoxFuture<'a, Result<Option<Holder>, FleetAway>>;

    /// Wakes an id, once, placing it when nobody holds it; a new epoch is above `above`.
    ///
    /// # Cancel safety
    ///
    /// The id may have been placed, and may be waking.
    fn wake<'a>(&'a self, key: &'a PlacementKey, above: u64) -> BoxFuture<'a, Attempt>;

    /// From now on new epochs are above `epoch` for every id.
    fn raise_floor(&self, epoch: u64);

    /// Whether the fleet has started cold and still waits for workers that outlived it.
    ///
    /// # Errors
    ///
    /// The registry does not answer.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    fn is_cold(&self) -> BoxFuture<'_, Result<bool, FleetAway>>;
}
