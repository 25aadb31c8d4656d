//! What the fleet shares beyond its placements: the ring of events, and the leases of its nodes.

use std::collections::VecDeque;
use std::time::Duration;

use ahash::AHashMap;
use tokio::time::Instant;

use crate::store::{Event, EventPage};

/// How many events are kept.
const RING: usize = 1_000;

/// The ring of events (P3.3).
#[derive(Clone, Default)]
pub(super) struct Ring {
    latest: u64,
    events: VecDeque<Event>,
}

/// Leases that one node has at a time (P8.1).
#[derive(Clone, Default)]
pub(super) struct Leases {
    leases: AHashMap<String, Lease>,
}

#[derive(Clone)]
struct Lease {
    node: String,
    until: Instant,
}

// ===== impl Ring =====

impl Ring {
    pub(super) fn append(&mut self, events: Vec<Event>) {
        for mut event in events {
            self.latest += 1;
            event.seq = self.latest;
            if self.events.len() == RING {
                self.events.pop_front();
            }
            self.events.push_back(event);
        }
    }

    /// The events after `seq`. A reader whose number this ring has not given yet has read another one, and begins anew.
    pub(super) fn after(&self, seq: u64, limit: usize) -> EventPage {
        let seq = if seq > self.latest { 0 } else { seq };
        let start = self.events.partition_point(|event| event.seq <= seq);
        let events: Vec<_> = self.events.range(start..).take(limit).cloned().collect();
        let next = events.last().map_or(seq, |event| event.seq);
        EventPage { events, next }
    }

    /// Goes on from the numbers of `earlier`.
    pub(super) fn go_on_from(&mut self, earlier: &Self) {
        self.latest = self.latest.max(earlier.latest);
    }
}

// ===== impl Leases =====

impl Leases {
    pub(super) fn lead(&mut self, name: &str, node: &str, ttl: Duration, now: Instant) -> bool {
        let until = pinned_domain::saturating_add(now, ttl);
        match self.leases.get_mut(name) {
            Some(lease) if lease.until > now && lease.node != node => false,
            _ => {
                let node = node.to_owned();
                self.leases.insert(name.to_owned(), Lease { node, until });
                true
            }
        }
    }

    pub(super) fn stand_down(&mut self, name: &str, node: &str) {
        if self
            .leases
            .get(name)
            .is_some_and(|lease| lease.node == node)
        {
            self.leases.remove(name);
        }
    }

    pub(super) fn leader(&self, name: &str, now: Instant) -> Option<(String, Duration)> {
        let lease = self.leases.get(name)?;
        let left = lease.until.checked_duration_since(now)?;
        (!left.is_zero()).then(|| (lease.node.clone(), left))
    }
}
