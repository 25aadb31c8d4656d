//! The directory: which ids have a record, and which epochs are known of those that have none.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::RwLock;
use tokio::time::Instant;

use super::core::{Host, Service};
use super::fence::{Fence, Remembered};
use super::record::{Admission, Record};
use crate::api::chain::{Origin, chain_hold_of};
use crate::api::refusal::Refusal;
use crate::api::seam::{Begin, Seam, TurnKind};

const SHARDS: usize = 64;

/// Ids and their records, in shards so that ids rarely meet on a lock; a lookup of a live id takes a shared one.
pub(crate) struct Directory {
    hasher: DefaultHashBuilder,
    shards: Box<[RwLock<Shard>]>,
    /// Records in all shards; a creation reserves its place here first, so that the cap holds exactly.
    len: AtomicUsize,
}

#[derive(Default)]
struct Shard {
    records: HashTable<Arc<Record>>,
    /// Fences of ids without a record.
    fences: HashMap<Box<str>, Remembered>,
}

impl Shard {
    /// What is known of an id without a record, unless that is older than `life` (H12.7).
    fn fence(&self, id: &str, now: Instant, life: Duration) -> Option<Fence> {
        let known = self.fences.get(id)?;
        (now.saturating_duration_since(known.updated) <= life).then_some(known.fence)
    }

    fn remember(&mut self, id: &str, fence: Fence, updated: Instant) {
        self.fences.insert(id.into(), Remembered { fence, updated });
    }
}

/// What came of an admission.
pub(super) enum Admitted {
    Record(Arc<Record>),
    /// Wait for this record's close, then ask again.
    AwaitClose(Arc<Record>),
    TurnedAway(TurnedAway),
}

/// Why a request was not admitted.
pub(super) enum TurnedAway {
    Refused(Refusal),
    /// The host has shut down (H3.1).
    Stopped,
}

impl From<Refusal> for TurnedAway {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Refusal> for Admitted {
    fn from(refusal: Refusal) -> Self {
        Self::TurnedAway(refusal.into())
    }
}

impl Directory {
    pub(super) fn new() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            len: AtomicUsize::new(0),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    fn locate(&self, id: &str) -> (u64, &RwLock<Shard>) {
        let hash = self.hasher.hash_one(id);
        // The table takes its own bits from both ends of the hash; these are between them.
        let index = (hash >> 40) as usize % SHARDS;
        (hash, &self.shards[index])
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Record>> {
        let (hash, shard) = self.locate(id);
        let shard = shard.read();
        shard
            .records
            .find(hash, |record| record.id() == id)
            .map(Arc::clone)
    }

    /// Every record there is at some moment of the walk, in the order of the ids.
    pub(super) fn records(&self) -> Vec<Arc<Record>> {
        let mut all = Vec::with_capacity(self.len());
        for shard in &self.shards {
            all.extend(shard.read().records.iter().map(Arc::clone));
        }
        // The hasher's order is another one in every process, and a simulation has to see the same twice.
        all.sort_unstable_by(|a, b| a.id().cmp(b.id()));
        all
    }

    fn reserve(&self, max: usize) -> bool {
        self.len
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |len| {
                (len < max).then_some(len + 1)
            })
            .is_ok()
    }

    /// Gives a place back that was reserved and not taken.
    fn unreserve(&self) {
        self.len.fetch_sub(1, Ordering::AcqRel);
    }

    /// Takes `record` out and keeps its fence, unless it still owes a release.
    ///
    /// The record turns closed behind the shard's lock: nobody finds it here after that, and nobody finds the id free
    /// before.
    pub(super) fn remove(&self, record: &Arc<Record>, handed_back: bool) -> bool {
        let now = record.now();
        let (hash, shard) = self.locate(record.id());
        let mut shard = shard.write();
        let Some((fence, hooks)) = record.become_closed(handed_back) else {
            return false;
        };
        if let Ok(entry) = shard
            .records
            .find_entry(hash, |known| Arc::ptr_eq(known, record))
        {
            entry.remove();
            self.len.fetch_sub(1, Ordering::AcqRel);
        }
        if let Some(fence) = fence {
            shard.remember(record.id(), fence, now);
        }
        drop(shard);
        // User code, which may ask its instance something or panic: no lock is held, and who waits for the close is
        // still to be told.
        if catch_unwind(AssertUnwindSafe(|| drop(hooks))).is_err() {
            tracing::error!(
                target: "pinned::host",
                instance_id = record.id(),
                namespace = &*record.host.namespace,
                "a lease hook panicked when it was dropped"
            );
        }
        true
    }

    /// Forgets fences that are older than `life` (H12.7).
    pub(super) fn purge_fences(&self, now: Instant, life: Duration) {
        for shard in &self.shards {
            if shard.read().fences.is_empty() {
                continue;
            }
            shard
                .write()
                .fences
                .retain(|_, known| now.saturating_duration_since(known.updated) <= life);
        }
    }
}

impl Host {
    /// Admits a request for `id`, in the order of H3. The record counts it from here on.
    pub(super) fn admit(self: &Arc<Self>, id: &str, epoch: Option<u64>) -> Admitted {
        match self.service() {
            Service::Running => {}
            Service::NotStarted => return Refusal::NotServing.into(),
            Service::Stopped => return Admitted::TurnedAway(TurnedAway::Stopped),
        }
        if self.env.lease.expired() {
            return self.refuse_expired(id, epoch).into();
        }
        loop {
            let Some(record) = self.directory.get(id) else {
                match self.construct(id, epoch) {
                    Ok(Some(record)) => return Admitted::Record(record),
                    // Somebody else's construction came first.
                    Ok(None) => continue,
                    Err(refusal) => return refusal.into(),
                }
            };
            match record.admit(epoch) {
                Admission::Admitted => return Admitted::Record(record),
                Admission::Refused(refusal) => return refusal.into(),
                Admission::AwaitClose => return Admitted::AwaitClose(record),
                Admission::Gone => {}
            }
        }
    }

    /// The record that an admission came to, once whatever close it has to wait for has ended (H3.9).
    pub(super) async fn after_closes(
        self: &Arc<Self>,
        mut admitted: Admitted,
        id: &str,
        epoch: Option<u64>,
        origin: &Origin,
    ) -> Result<Arc<Record>, TurnedAway> {
        loop {
            match admitted {
                Admitted::Record(record) => return Ok(record),
                Admitted::TurnedAway(why) => return Err(why),
                Admitted::AwaitClose(record) => {
                    record.wait_for_successor(origin).await?;
                    admitted = self.admit(id, epoch);
                }
            }
        }
    }

    /// Begins work on a resident instance in one step. `None`: the long way, which knows why not.
    ///
    /// Only ids that are valid have a record, so none is checked here.
    pub(super) fn begin_resident(&self, id: &str, turn: TurnKind) -> Option<(Seam, Begin)> {
        if self.service() != Service::Running || self.env.lease.expired() {
            return None;
        }
        let record = self.directory.get(id)?;
        let begun = record.admit_and_begin(turn, chain_hold_of(&*record))?;
        Some((record as Seam, begun))
    }

    /// The refusal of everything once the lease has passed (H3.2). It says whether the id lives here and whether it stays, and if
    /// it does not live here, its epoch is turned away in the same step: a control plane takes the id elsewhere, while this
    /// lease may run again (P5.9).
    fn refuse_expired(&self, id: &str, epoch: Option<u64>) -> Refusal {
        let (hash, shard) = self.directory.locate(id);
        let mut shard = shard.write();
        if let Some(record) = shard.records.find(hash, |record| record.id() == id) {
            let record = Arc::clone(record);
            drop(shard);
            return if record.is_leaving() {
                Refusal::LeaseExpiredLeaving
            } else {
                Refusal::LeaseExpiredHere
            };
        }
        if let Some(epoch) = epoch.filter(|_| self.env.is_placed()) {
            let now = self.env.domain.monotonic();
            let mut fence = shard.fence(id, now, self.fence_life());
            // A lower epoch, or one that was handed back, stays away as it is.
            if Fence::admit(&mut fence, epoch).is_ok()
                && let Some(fence) = fence
            {
                let fence = Fence {
                    turned_away: true,
                    ..fence
                };
                shard.remember(id, fence, now);
            }
        }
        Refusal::LeaseExpired
    }

    /// Why nothing new is activated here at the moment, in the order of H3.4; otherwise a place among the records is
    /// reserved.
    fn refuse_activation(&self) -> Option<Refusal> {
        if !self.env.lease.healthy() {
            return Some(Refusal::LeaseUnhealthy);
        }
        if self.is_draining() {
            return Some(Refusal::Draining);
        }
        if self.service() != Service::Running {
            return Some(Refusal::NotServing);
        }
        let reserved = self.directory.reserve(self.options.max_instances);
        (!reserved).then_some(Refusal::Capacity)
    }

    /// Makes a cold record for `id` with this request attached; `None` when there is one by now (H3.4, H3.7).
    fn construct(
        self: &Arc<Self>,
        id: &str,
        epoch: Option<u64>,
    ) -> Result<Option<Arc<Record>>, Refusal> {
        let directory = &self.directory;
        let (hash, shard) = directory.locate(id);
        let mut shard = shard.write();
        if shard
            .records
            .find(hash, |record| record.id() == id)
            .is_some()
        {
            return Ok(None);
        }
        let now = self.env.domain.monotonic();
        let mut fence = shard.fence(id, now, self.fence_life());
        if let Some(epoch) = epoch {
            Fence::admit(&mut fence, epoch)?;
        }
        let mut refusal = self.refuse_activation();
        if let (Some(fence), Some(_)) = (fence.as_mut(), epoch) {
            // A control plane takes the id elsewhere on such a refusal (P5.9): what comes under this epoch later is late,
            // and must not find a second home here.
            if refusal.is_none() && fence.turned_away {
                self.directory.unreserve();
                refusal = Some(Refusal::ReleasedEpoch);
            }
            fence.turned_away |= refusal.is_some() && self.env.is_placed();
            // It moves even if a later step refuses (H3.3).
            let fence = *fence;
            shard.remember(id, fence, now);
        }
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let record = Record::new(Arc::clone(self), id, fence);
        shard.fences.remove(id);
        shard
            .records
            .insert_unique(hash, Arc::clone(&record), |record| {
                directory.hasher.hash_one(record.id())
            });
        drop(shard);
        // Cold records are swept like others: an authorizer may take for ever (H8.4).
        record.arm_first_sweep(&mut record.lock(), now);
        Ok(Some(record))
    }
}
