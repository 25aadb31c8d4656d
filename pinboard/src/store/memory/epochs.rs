//! Placement epochs (P4.3).

use ahash::RandomState;
use pinned_wire::epoch;

use crate::store::{PlacementKey, StoreError};

/// How many counters the ids share.
const COUNTERS: usize = 1024;

/// The counters that epochs come from.
///
/// Ids share counters, so that none needs to be kept for an id that nobody holds. There are many of them because a counter
/// that is used more often than once a millisecond runs ahead of the clock, and what a process forgets when it ends is made up
/// for by the clock alone.
#[derive(Clone)]
pub(super) struct Epochs {
    counters: Box<[u64]>,
    hasher: RandomState,
}

impl Epochs {
    pub(super) fn new() -> Self {
        Self {
            counters: vec![0; COUNTERS].into(),
            // The same in every run, so that a simulation is: which ids share a counter shows in their epochs.
            hasher: RandomState::with_seeds(0, 1, 2, 3),
        }
    }

    /// An epoch above all that `key` ever had, no lower than the time in milliseconds, and above `above`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unusable`]: there is none.
    pub(super) fn next(
        &mut self,
        key: &PlacementKey,
        now_ms: u64,
        above: u64,
    ) -> Result<u64, StoreError> {
        let counter = usize::try_from(self.hasher.hash_one(key)).unwrap_or_default() % COUNTERS;
        let counter = &mut self.counters[counter];
        let epoch = (*counter).max(above).saturating_add(1).max(now_ms);
        if epoch > epoch::MAX {
            return Err(StoreError::Unusable(format!(
                "there is no epoch left for {key}"
            )));
        }
        *counter = epoch;
        Ok(epoch)
    }
}
