//! What every new epoch is above.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A floor for new epochs, whatever the id; it only ever rises. Cheap to clone; clones are the same.
///
/// ```
/// use pinboard::scanner::EpochFloor;
///
/// let floor = EpochFloor::default();
/// floor.raise(7);
/// floor.raise(3);
/// assert_eq!(floor.get(), 7);
/// ```
#[derive(Clone, Debug, Default)]
pub struct EpochFloor(Arc<AtomicU64>);

impl EpochFloor {
    /// From now on new epochs are above `epoch`.
    pub fn raise(&self, epoch: u64) {
        self.0.fetch_max(epoch, Ordering::AcqRel);
    }

    /// The highest that was named.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
