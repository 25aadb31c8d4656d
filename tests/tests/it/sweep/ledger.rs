//! What the client knows: what it has sent, and what was confirmed to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::image::{Image, Name, name};

/// Kept over every generation.
#[derive(Default)]
pub(super) struct Ledger {
    lanes: BTreeMap<Name, Items>,
    bumps: Bumps,
    /// What each row's `~state` was when the last process crashed (S5.15).
    pub(super) residue: BTreeMap<Name, Value>,
    /// The store fails now and then: an instance may begin anew at any time.
    pub(super) faulty: bool,
}

/// The items of one lane.
#[derive(Clone, Default)]
pub(super) struct Items {
    pub(super) sent: BTreeSet<u64>,
    pub(super) acknowledged: BTreeSet<u64>,
}

/// Of the durable counter on the instance itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bumps {
    pub(super) sent: u64,
    /// The highest count that was confirmed.
    pub(super) confirmed: u64,
    /// The highest that was seen on the disk.
    pub(super) seen: u64,
}

impl Ledger {
    pub(super) fn new(faulty: bool) -> Self {
        Self {
            faulty,
            ..Self::default()
        }
    }

    pub(super) fn sent(&mut self, lane: Name, n: u64) {
        self.lanes.entry(lane).or_default().sent.insert(n);
    }

    pub(super) fn acknowledged(&mut self, lane: Name, n: u64) {
        self.lanes.entry(lane).or_default().acknowledged.insert(n);
    }

    pub(super) fn items(&self, lane: &Name) -> Items {
        self.lanes.get(lane).cloned().unwrap_or_default()
    }

    pub(super) fn relays(&self) -> Items {
        self.items(&name("relay", "~"))
    }

    /// The lanes that items were sent to.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Name> {
        self.lanes.keys()
    }

    pub(super) fn bump_sent(&mut self) {
        self.bumps.sent += 1;
    }

    pub(super) fn bump_confirmed(&mut self, count: u64) {
        self.bumps.confirmed = self.bumps.confirmed.max(count);
    }

    pub(super) fn bump_seen(&mut self, count: u64) {
        self.bumps.seen = self.bumps.seen.max(count);
    }

    pub(super) fn bumps(&self) -> Bumps {
        self.bumps
    }

    /// What is durable at a crash counts as acknowledged from here on (S5.25).
    pub(super) fn adopt(&mut self, image: &Image) {
        self.residue.clear();
        for (lane, row) in &image.rows {
            if let Some(state) = row.doc.get("~state") {
                self.residue.insert(lane.clone(), state.clone());
            }
            if let Some(items) = self.lanes.get_mut(lane) {
                let queued = row.queue("queue").numbers();
                items.acknowledged.extend(queued);
                items.acknowledged.extend(row.log().iter().map(|run| run.0));
            }
        }
    }
}
