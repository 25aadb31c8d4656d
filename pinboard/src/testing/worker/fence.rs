//! The highest placement epoch of an id (H12).

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{InstanceKey, RefusalReason};

/// The fences of all ids, those that have no instance any more included.
#[derive(Default)]
pub(super) struct Fences {
    fences: BTreeMap<InstanceKey, Fence>,
}

struct Fence {
    epoch: u64,
    released: bool,
    updated: Instant,
}

impl Fences {
    /// Checks the epoch of a request, and moves the fence (H12.3).
    pub(super) fn admit(
        &mut self,
        key: &InstanceKey,
        epoch: u64,
        now: Instant,
        age: Duration,
    ) -> Result<(), RefusalReason> {
        self.fences
            .retain(|_, fence| now.saturating_duration_since(fence.updated) <= age);
        match self.fences.get(key) {
            Some(fence) if epoch < fence.epoch => Err(RefusalReason::StaleEpoch),
            Some(fence) if epoch == fence.epoch && fence.released => {
                Err(RefusalReason::ReleasedEpoch)
            }
            _ => {
                self.put(key, epoch, false, now);
                Ok(())
            }
        }
    }

    /// Marks an epoch as handed back, if it is the highest still (H12.4).
    pub(super) fn release(&mut self, key: &InstanceKey, epoch: u64, now: Instant) {
        if self
            .fences
            .get(key)
            .is_none_or(|fence| fence.epoch <= epoch)
        {
            self.put(key, epoch, true, now);
        }
    }

    fn put(&mut self, key: &InstanceKey, epoch: u64, released: bool, now: Instant) {
        let fence = Fence {
            epoch,
            released,
            updated: now,
        };
        self.fences.insert(key.clone(), fence);
    }
}
