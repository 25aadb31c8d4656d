//! The connections of one lane.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ahash::RandomState;
use parking_lot::Mutex;
use pinned_domain::until;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::vitals::{Nudge, Patience, Sight, Vitals};

/// The connections of one lane.
#[derive(Debug, Default)]
pub(super) struct Table {
    open: Mutex<Open>,
    /// Told when the last one is gone.
    empty: Notify,
    /// Those that come are told goodbye at once: they are answered once.
    is_leaving: AtomicBool,
}

#[derive(Debug, Default)]
struct Open {
    connections: HashMap<u64, (Arc<Vitals>, Sight), RandomState>,
    next: u64,
}

/// A connection's place in the table, for as long as it is held.
#[derive(Debug)]
pub(super) struct Registered {
    table: Arc<Table>,
    key: u64,
    vitals: Arc<Vitals>,
}

impl Table {
    pub(super) fn register(self: &Arc<Self>, now: Instant) -> Registered {
        let vitals = Vitals::new();
        let mut open = self.open.lock();
        let key = open.next;
        open.next += 1;
        let connection = (Arc::clone(&vitals), Sight::new(now));
        open.connections.insert(key, connection);
        drop(open);
        // After it can be seen: whoever begins to leave tells it, or it sees that here.
        if self.is_leaving.load(Ordering::SeqCst) {
            vitals.tell(Nudge::Goodbye);
        }
        Registered {
            table: Arc::clone(self),
            key,
            vitals,
        }
    }

    /// Tells goodbye to those that are there and to those that come.
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
        self.tell(Nudge::Goodbye);
    }

    pub(super) fn tell(&self, nudge: Nudge) {
        for (vitals, _) in self.open.lock().connections.values() {
            vitals.tell(nudge);
        }
    }

    /// Ends those that take too long.
    pub(super) fn look(&self, now: Instant, patience: Patience) {
        for (vitals, sight) in self.open.lock().connections.values_mut() {
            vitals.look(sight, now, patience);
        }
    }

    pub(super) async fn wait_empty(&self) {
        until(&self.empty, || self.open.lock().connections.is_empty()).await;
    }
}

impl Registered {
    pub(super) fn vitals(&self) -> &Arc<Vitals> {
        &self.vitals
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut open = self.table.open.lock();
        open.connections.remove(&self.key);
        let is_empty = open.connections.is_empty();
        drop(open);
        if is_empty {
            self.table.empty.notify_waiters();
        }
    }
}
