//! Watches the disk of one run.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use pinned::durability::Row;
use pinned_testing::sim::SimDisk;

use super::image::{Image, instance};
use super::invariants::{self, Violation};
use super::ledger::Ledger;

/// Checks the contract after each operation; keeps what it found first.
pub(super) struct Watch {
    pub(super) disk: SimDisk,
    pub(super) ledger: Mutex<Ledger>,
    /// The fence of a sabotaged store.
    pub(super) fence: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    checked: Vec<Row>,
    found: Vec<Violation>,
}

impl Watch {
    pub(super) fn new(faulty: bool) -> Arc<Self> {
        Arc::new(Self {
            disk: SimDisk::new(),
            ledger: Mutex::new(Ledger::new(faulty)),
            fence: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }

    /// Called after an operation: checks the disk if it has changed.
    pub(super) fn after_op(&self) {
        let rows = self.disk.memory().rows(&instance());
        if std::mem::replace(&mut self.state.lock().checked, rows.clone()) != rows {
            self.check();
        }
    }

    /// Checks what must hold at any time.
    pub(super) fn check(&self) {
        let image = Image::of(&self.disk);
        let found = {
            let mut ledger = self.ledger.lock();
            let found = invariants::always(&image, &ledger);
            ledger.bump_seen(image.row("~", "~").map_or(0, |row| row.number("bumps")));
            found
        };
        self.report(found);
    }

    /// Checks what must hold besides when nothing is left to do.
    pub(super) fn check_drained(&self) {
        self.check();
        let found = invariants::drained(&Image::of(&self.disk), &self.ledger.lock());
        self.report(found);
    }

    /// Only the first are kept: what comes later may follow from them.
    pub(super) fn report(&self, found: Vec<Violation>) {
        let mut state = self.state.lock();
        if state.found.is_empty() {
            state.found = found;
        }
    }

    pub(super) fn found(&self) -> Vec<Violation> {
        self.state.lock().found.clone()
    }
}
