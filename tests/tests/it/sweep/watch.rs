//! Watches the disk of one run.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use pinned_testing::sim::SimDisk;

use super::image::Image;
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
    /// The disk as it was last looked at.
    image: Image,
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
        let before = self.state.lock().image.clone();
        if !self.look().is_same(&before) {
            self.check();
        }
    }

    /// The disk as it is.
    pub(super) fn look(&self) -> Image {
        let mut state = self.state.lock();
        state.image = state.image.next(&self.disk);
        state.image.clone()
    }

    /// Checks what must hold at any time.
    pub(super) fn check(&self) {
        let image = self.look();
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
        let found = invariants::drained(&self.look(), &self.ledger.lock());
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
