//! The placement rows, and the releases that are remembered for a moment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use tokio::time::Instant;

use super::watch::Readers;
use crate::store::{Fence, FenceState, PlacementKey, Row, SessionId};

/// A release that comes within this of its placement is remembered.
const SOON: Duration = Duration::from_secs(1);
/// For so long.
const REMEMBERED: Duration = Duration::from_secs(5);

/// All rows.
#[derive(Clone, Default)]
pub(super) struct Rows {
    rows: AHashMap<PlacementKey, Placed>,
    /// How many each `(env, ns)` has; none has zero.
    counts: BTreeMap<(Arc<str>, Arc<str>), u64>,
    remembered: AHashMap<PlacementKey, Remembered>,
    /// What is remembered, in the order in which it is forgotten.
    forgetting: VecDeque<(Instant, PlacementKey)>,
    latest: u64,
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) session: SessionId,
    pub(super) epoch: u64,
    pub(super) fence: Option<FenceAt>,
    /// Its place in the list of its session.
    pub(super) seq: u64,
    /// Which life of the store it was placed in.
    pub(super) generation: u64,
    placed_at: Instant,
    pub(super) readers: Readers,
}

/// A fence, by the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct FenceAt {
    starts: Instant,
    ends: Instant,
}

/// A release that is remembered.
#[derive(Clone, Debug)]
struct Remembered {
    session: SessionId,
    until: Instant,
}

// ===== impl Rows =====

impl Rows {
    pub(super) fn get(&self, key: &PlacementKey) -> Option<&Placed> {
        self.rows.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &PlacementKey) -> Option<&mut Placed> {
        self.rows.get_mut(key)
    }

    /// Puts a row where none is, or in place of the one that is there.
    pub(super) fn place(
        &mut self,
        key: &PlacementKey,
        session: SessionId,
        epoch: u64,
        generation: u64,
        now: Instant,
    ) -> &mut Placed {
        self.latest += 1;
        let placed = Placed {
            session,
            epoch,
            fence: None,
            seq: self.latest,
            generation,
            placed_at: now,
            readers: Readers::default(),
        };
        self.remembered.remove(key);
        match self.rows.entry(key.clone()) {
            std::collections::hash_map::Entry::Occupied(mut row) => {
                row.insert(placed);
                row.into_mut()
            }
            std::collections::hash_map::Entry::Vacant(row) => {
                let ns = (Arc::clone(&key.env), Arc::clone(&key.ns));
                *self.counts.entry(ns).or_default() += 1;
                row.insert(placed)
            }
        }
    }

    pub(super) fn remove(&mut self, key: &PlacementKey) -> Option<Placed> {
        let placed = self.rows.remove(key)?;
        let ns = (Arc::clone(&key.env), Arc::clone(&key.ns));
        if let Some(count) = self.counts.get_mut(&ns) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&ns);
            }
        }
        Some(placed)
    }

    /// A fresh place in the list of a session.
    pub(super) fn next_seq(&mut self) -> u64 {
        self.latest += 1;
        self.latest
    }

    pub(super) fn counts(&self) -> Vec<(Arc<str>, Arc<str>, u64)> {
        self.counts
            .iter()
            .map(|((env, ns), rows)| (Arc::clone(env), Arc::clone(ns), *rows))
            .collect()
    }

    /// Remembers that `placed` was released, if that came soon.
    pub(super) fn remember(&mut self, key: &PlacementKey, placed: &Placed, now: Instant) {
        if now.saturating_duration_since(placed.placed_at) < SOON {
            let until = now + REMEMBERED;
            let session = placed.session.clone();
            self.remembered
                .insert(key.clone(), Remembered { session, until });
            self.forgetting.push_back((until, key.clone()));
        }
    }

    /// Whom a remembered release prefers.
    pub(super) fn preferred(&self, key: &PlacementKey) -> Option<&SessionId> {
        self.remembered.get(key).map(|release| &release.session)
    }

    /// Forgets what has been remembered for long enough.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some((until, key)) = self.forgetting.front()
            && *until <= now
        {
            if self.remembered.get(key).is_some_and(|r| r.until == *until) {
                self.remembered.remove(key);
            }
            self.forgetting.pop_front();
        }
    }

    /// Forgets who has read what: all of them have been told to forget everything.
    pub(super) fn unread(&mut self) {
        for row in self.rows.values_mut() {
            row.readers = Readers::default();
        }
    }
}

// ===== impl Placed =====

impl Placed {
    /// The row as it stands now.
    pub(super) fn read(&self, generation: u64, now: Instant) -> Row {
        Row {
            session: self.session.clone(),
            epoch: self.epoch,
            current: self.generation == generation,
            fence: self.fence.map(|fence| fence.read(now)),
        }
    }

    pub(super) fn is(&self, session: &SessionId, epoch: u64) -> bool {
        self.session == *session && self.epoch == epoch
    }
}

// ===== impl FenceAt =====

impl FenceAt {
    pub(super) fn new(fence: Fence, now: Instant) -> Self {
        let starts = pinned_domain::saturating_add(now, fence.starts_in);
        let ends = pinned_domain::saturating_add(now, fence.ends_in);
        Self {
            starts,
            // It cannot pass before it begins.
            ends: ends.max(starts),
        }
    }

    fn read(self, now: Instant) -> FenceState {
        let ends_in = self.ends.saturating_duration_since(now);
        if self.starts > now {
            FenceState::Ahead {
                starts_in: self.starts - now,
                ends_in,
            }
        } else if self.ends > now {
            FenceState::Standing { ends_in }
        } else {
            FenceState::Passed
        }
    }
}
