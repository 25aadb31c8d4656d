//! What the code of the workload tells about one generation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::invariants::Violation;

/// The witness of one generation. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Probe(Arc<Inner>);

#[derive(Default)]
struct Inner {
    dead: AtomicBool,
    opened: Mutex<BTreeSet<String>>,
    complaints: Mutex<Vec<Violation>>,
}

impl Probe {
    /// A keyed lane has opened.
    pub(super) fn opened(&self, lane: &str) {
        self.0.opened.lock().insert(lane.to_owned());
    }

    /// The keyed lanes that have opened.
    pub(super) fn lanes(&self) -> BTreeSet<String> {
        self.0.opened.lock().clone()
    }

    /// A handler runs (S5.29).
    pub(super) fn step(&self, n: u64) {
        if self.0.dead.load(Ordering::Acquire) {
            self.complain("S5.29", format!("the handler of {n} ran after the crash"));
        }
    }

    pub(super) fn complain(&self, number: &'static str, what: String) {
        self.0.complaints.lock().push(Violation { number, what });
    }

    /// The process has crashed: nothing of it may run any more.
    pub(super) fn bury(&self) {
        self.0.dead.store(true, Ordering::Release);
    }

    pub(super) fn complaints(&self) -> Vec<Violation> {
        self.0.complaints.lock().clone()
    }
}
