//! An instance, as far as its log knows one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::{FrontierError, FrontierOwner};
use crate::domain::{Domain, TaskHandle};

/// Runs flushers as tasks of the runtime, and notes aborts.
#[derive(Default)]
pub(super) struct Owner {
    aborts: Mutex<Vec<FrontierError>>,
    flushers: Mutex<Vec<TaskHandle<()>>>,
    running: AtomicUsize,
    most: AtomicUsize,
}

struct Running(Arc<Owner>);

impl Owner {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn aborts(&self) -> usize {
        self.aborts.lock().len()
    }

    /// How many flushers there have been.
    pub(super) fn flushers(&self) -> usize {
        self.flushers.lock().len()
    }

    /// How many ran at one time, at most.
    pub(super) fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Takes the flushers away, wherever they are.
    pub(super) fn cut(&self) {
        for flusher in &*self.flushers.lock() {
            flusher.abort();
        }
    }
}

impl FrontierOwner for Owner {
    fn frontier_failed(self: Arc<Self>, error: &FrontierError) {
        self.aborts.lock().push(error.clone());
    }

    fn spawn_flusher(self: Arc<Self>, flush: BoxFuture<'static, ()>) {
        let running = Running::new(Arc::clone(&self));
        let flusher = Domain::real().spawn(async move {
            flush.await;
            drop(running);
        });
        self.flushers.lock().push(flusher);
    }
}

impl Running {
    fn new(owner: Arc<Owner>) -> Self {
        let running = owner.running.fetch_add(1, Ordering::SeqCst) + 1;
        owner.most.fetch_max(running, Ordering::SeqCst);
        Self(owner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}
