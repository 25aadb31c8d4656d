//! How many connections there may be at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many at once.
#[derive(Debug)]
pub(super) struct Limit {
    held: AtomicUsize,
    most: usize,
}

/// One of them, for as long as it is held.
#[derive(Debug)]
pub(super) struct Permit(Arc<Limit>);

impl Limit {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            held: AtomicUsize::new(0),
            most,
        })
    }

    /// One more, unless there are as many as there may be.
    pub(super) fn permit(self: &Arc<Self>) -> Option<Permit> {
        let one_more = |held| (held < self.most).then_some(held + 1);
        self.held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
            .then(|| Permit(Arc::clone(self)))
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }
}
