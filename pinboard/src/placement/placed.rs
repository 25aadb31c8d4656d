//! What placement answers.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use crate::store::PlacementKey;
use crate::workers::Worker;

/// A holder.
#[derive(Debug)]
pub struct Placed {
    /// The id.
    pub key: PlacementKey,
    /// Its holder.
    pub worker: Arc<Worker>,
    /// The placement epoch.
    pub epoch: u64,
    /// The same, as a header.
    pub epoch_header: HeaderValue,
}

impl Placed {
    /// `worker` holds `key` under `epoch`.
    #[must_use]
    pub fn new(key: PlacementKey, worker: Arc<Worker>, epoch: u64) -> Self {
        Self {
            key,
            worker,
            epoch,
            epoch_header: HeaderValue::from(epoch),
        }
    }

    /// Whether both are the same holding of the same id: one session, one epoch.
    pub(crate) fn is_same_holding(&self, other: &Self) -> bool {
        self.epoch == other.epoch && self.worker.id == other.worker.id && self.key == other.key
    }
}

/// There is no holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPlaced {
    /// No worker serves the namespace, or ever has: 404.
    UnknownNamespace,
    /// No worker can take it: 503 `no live workers` (P4.5).
    NoWorkers,
    /// Nothing new is placed for a while: 503 (P4.4).
    Quarantined(Duration),
    /// Its holder is being asked to let go: 503 (P3.5).
    Fenced(Duration),
    /// The store does not answer: 503 (P12.4).
    StoreAway,
}

/// What a worker said when it did not run a request (P5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerRefusal {
    /// The id is not resident there: the row is freed and the id placed again.
    NotResident,
    /// Its placement is moving, or has moved: ask the store again, and wait up to 2 s for the row to move (P5.10).
    Moving,
}
