//! Which worker a request goes to (P4). (Skeleton: the seam that others build against.)

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use crate::store::PlacementKey;
use crate::workers::Worker;

/// Answers one question: who holds this id?
#[derive(Debug, Default)]
pub struct Placement {}

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

impl Placement {
    /// Who holds `key`, placing it when nobody does. Of a known id this makes no round trip.
    ///
    /// # Errors
    ///
    /// There is no holder.
    ///
    /// # Cancel safety
    ///
    /// The id may have been placed.
    pub async fn resolve(&self, _key: &PlacementKey) -> Result<Arc<Placed>, NotPlaced> {
        Err(NotPlaced::NoWorkers)
    }

    /// As [`resolve`](Self::resolve); a new epoch is above `above`.
    ///
    /// # Errors
    ///
    /// There is no holder.
    ///
    /// # Cancel safety
    ///
    /// The id may have been placed.
    pub async fn resolve_above(
        &self,
        key: &PlacementKey,
        _above: u64,
    ) -> Result<Arc<Placed>, NotPlaced> {
        self.resolve(key).await
    }

    /// From now on new epochs are above `epoch`, whatever the id.
    pub fn raise_floor(&self, _epoch: u64) {}

    /// Who holds the id after `placed` refused it without running it; `None` when the refusal stands and is relayed.
    ///
    /// # Errors
    ///
    /// There is no holder now.
    ///
    /// # Cancel safety
    ///
    /// The row may have been freed, or the id placed.
    pub async fn after_refusal(
        &self,
        _placed: &Arc<Placed>,
        _refusal: WorkerRefusal,
    ) -> Result<Option<Arc<Placed>>, NotPlaced> {
        Ok(None)
    }

    /// Forgets what is known of an id, if it is still this.
    pub fn forget(&self, _placed: &Arc<Placed>) {}
}
