//! What the tasks saw.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::store::{PlacementKey, SessionId};

/// The facts of one run, by one clock that all tasks share.
#[derive(Default)]
pub(super) struct Log {
    clock: AtomicU64,
    facts: Mutex<Vec<Entry>>,
}

/// A fact, and between which ticks of the clock the operation ran that it comes from: it held at some time between.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) begun: u64,
    pub(super) ended: u64,
    pub(super) fact: Fact,
}

#[derive(Clone, Debug)]
pub(super) enum Fact {
    /// A session began.
    Began(SessionId),
    /// Its client registered again: it takes no more heartbeats.
    Retired(SessionId),
    /// It was ended.
    Ended(SessionId),
    /// A heartbeat of it was taken, or not.
    Beat(SessionId, bool),
    /// Of an id.
    Of(PlacementKey, Row),
}

#[derive(Clone, Debug)]
pub(super) enum Row {
    /// A new holder.
    Placed {
        holder: SessionId,
        epoch: u64,
        /// The epoch of whom it was taken from by a compare-and-set.
        over: Option<u64>,
    },
    /// The same epoch, for another session of the same worker.
    Moved { holder: SessionId, epoch: u64 },
    /// Read.
    Seen(Option<(SessionId, u64)>),
    /// Handed back.
    Released { epoch: u64 },
    /// Fenced, with no time left.
    Fenced { epoch: u64 },
}

impl Log {
    /// The time before an operation.
    pub(super) fn begin(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Records what an operation that began at `begun` came to.
    pub(super) fn record(&self, begun: u64, fact: Fact) {
        let ended = self.clock.fetch_add(1, Ordering::SeqCst);
        self.facts.lock().push(Entry { begun, ended, fact });
    }

    pub(super) fn facts(&self) -> Vec<Entry> {
        let mut facts = self.facts.lock().clone();
        facts.sort_by_key(|entry| entry.begun);
        facts
    }
}
