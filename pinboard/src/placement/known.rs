//! What this node knows of placements.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ahash::RandomState;
use parking_lot::Mutex;
use pinned_domain::{FAR_FUTURE, saturating_add};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, OptionsBuilder, UnitWeighter};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use super::Placed;
use crate::store::PlacementKey;

/// How many placements are remembered.
const CAPACITY: usize = 1_000_000;

/// How many parts the memory has that do not wait for each other.
const SHARDS: usize = 64;

/// How many parts the ids are split into for telling apart what was read before an invalidation and after it.
const BUCKETS: usize = 1_024;

/// How long what was read is trusted when nobody says that it has changed (P5.7).
const UNTOLD: Duration = Duration::from_secs(1);

/// An id, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyRef<'a> {
    pub(super) env: &'a str,
    pub(super) ns: &'a str,
    pub(super) id: &'a str,
}

impl<'a> KeyRef<'a> {
    pub(super) fn of(key: &'a PlacementKey) -> Self {
        Self {
            env: &key.env,
            ns: &key.ns,
            id: &key.id,
        }
    }
}

impl Equivalent<PlacementKey> for KeyRef<'_> {
    fn equivalent(&self, key: &PlacementKey) -> bool {
        *self == KeyRef::of(key)
    }
}

/// What this node knows of placements: bounded, and never changed by a reading that is older than what changed it.
///
/// An invalidation may come while a row is being read, and be dealt with before the reading is. So a reading takes a
/// [`Ticket`] before it is sent, each invalidation advances the count of its bucket, and a reading is remembered only if its
/// ticket is still good, all under the bucket's lock.
pub(super) struct Known {
    rows: Cache<PlacementKey, Entry, UnitWeighter, RandomState>,
    buckets: Box<[Bucket]>,
    /// Fixed, so that a simulation does not depend on it; all that can be done by choosing ids is to have them forgotten.
    hasher: RandomState,
    /// Advanced when anything may have changed: older entries are [doubtful](Recall::Doubtful).
    generation: AtomicU64,
    /// Whether someone listens to the store's invalidations.
    told: AtomicBool,
}

#[derive(Default)]
struct Bucket {
    changes: Mutex<u64>,
    moved: Notify,
}

#[derive(Clone)]
struct Entry {
    placed: Arc<Placed>,
    generation: u64,
    fresh_until: Instant,
    /// When a fence begins: what was read holds no longer then, whatever happens.
    ends_at: Option<Instant>,
}

/// What is remembered of an id.
pub(super) enum Recall {
    /// It can be relied on, as far as anything can that is not asked of the store.
    Fresh(Arc<Placed>),
    /// It was true, and nothing says that it is not; good enough while the store cannot be asked (P12.4).
    Doubtful(Arc<Placed>),
    /// Nothing.
    Unknown,
}

/// Says when a reading began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    bucket: usize,
    changes: u64,
    generation: u64,
    told: bool,
    read_at: Instant,
}

impl Known {
    pub(super) fn new() -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity(CAPACITY)
            .weight_capacity(CAPACITY as u64)
            .shards(SHARDS)
            .build()
            .expect("both capacities are set");
        Self {
            rows: Cache::with_options(
                options,
                UnitWeighter,
                RandomState::new(),
                DefaultLifecycle::default(),
            ),
            buckets: (0..BUCKETS).map(|_| Bucket::default()).collect(),
            hasher: RandomState::with_seeds(1, 2, 3, 4),
            generation: AtomicU64::new(0),
            told: AtomicBool::new(false),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What is remembered of an id. Takes no lock that it keeps.
    #[inline]
    pub(super) fn recall(&self, key: KeyRef<'_>, now: Instant) -> Recall {
        let Some(entry) = self.rows.get(&key) else {
            return Recall::Unknown;
        };
        if entry.ends_at.is_some_and(|ends_at| ends_at <= now) {
            Recall::Unknown
        } else if now < entry.fresh_until
            && entry.generation == self.generation.load(Ordering::Acquire)
        {
            Recall::Fresh(entry.placed)
        } else {
            Recall::Doubtful(entry.placed)
        }
    }

    /// Before a row is read.
    pub(super) fn ticket(&self, key: &PlacementKey, now: Instant) -> Ticket {
        let bucket = self.bucket_of(key);
        // In this order: who sees the generation that the end of the listening made sees that it has ended.
        let generation = self.generation.load(Ordering::Acquire);
        let told = self.told.load(Ordering::Acquire);
        Ticket {
            bucket,
            changes: *self.buckets[bucket].changes.lock(),
            generation,
            told,
            read_at: now,
        }
    }

    /// Remembers what a reading came to, unless the row has changed meanwhile. It holds for `for_as_long` at most.
    pub(super) fn remember(
        &self,
        ticket: &Ticket,
        placed: Arc<Placed>,
        for_as_long: Option<Duration>,
    ) {
        let trusted = if ticket.told { FAR_FUTURE } else { UNTOLD };
        let entry = Entry {
            generation: ticket.generation,
            fresh_until: ticket.read_at + trusted,
            ends_at: for_as_long.map(|left| saturating_add(ticket.read_at, left)),
            placed: Arc::clone(&placed),
        };
        let changes = self.buckets[ticket.bucket].changes.lock();
        if *changes == ticket.changes {
            self.rows.insert(placed.key.clone(), entry);
        }
    }

    /// A row has changed.
    pub(super) fn invalidate(&self, key: &PlacementKey) {
        let bucket = &self.buckets[self.bucket_of(key)];
        {
            let mut changes = bucket.changes.lock();
            *changes += 1;
            self.rows.remove(&KeyRef::of(key));
        }
        bucket.moved.notify_waiters();
    }

    /// Anything may have changed. What is known stays, in doubt.
    pub(super) fn doubt_everything(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        for bucket in &self.buckets {
            bucket.moved.notify_waiters();
        }
    }

    /// Forgets an id if what is known of it is this.
    pub(super) fn forget(&self, placed: &Placed) {
        let same = |entry: &Entry| entry.placed.is_same_holding(placed);
        self.rows.remove_if(&KeyRef::of(&placed.key), same);
    }

    /// Ends once the row of an id, or perhaps another's, has changed since this call.
    pub(super) fn moved(&self, key: &PlacementKey) -> Notified<'_> {
        self.buckets[self.bucket_of(key)].moved.notified()
    }

    /// Someone listens to the store's invalidations, until this is dropped.
    pub(super) fn listening(&self) -> Listening<'_> {
        // What was missed before is in doubt.
        self.doubt_everything();
        self.told.store(true, Ordering::Release);
        Listening(self)
    }

    fn bucket_of(&self, key: &PlacementKey) -> usize {
        self.hash(key) as usize % BUCKETS
    }

    pub(super) fn hash(&self, key: impl Hash) -> u64 {
        self.hasher.hash_one(key)
    }
}

/// See [`Known::listening`].
pub(super) struct Listening<'a>(&'a Known);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.told.store(false, Ordering::Release);
        self.0.doubt_everything();
    }
}
