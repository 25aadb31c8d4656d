use std::fmt;
use std::sync::{Arc, Weak};

use super::group::Held;
use super::node::{Listener, Node, fresh_id};
use super::op::Op;

/// A subscription to the ops of an observable, which ends when this is dropped.
///
/// Dropping it affects later ops: one that is on its way at that moment still arrives.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use std::sync::Arc;
///
/// let count = pinned::Observable::new(0)?;
/// let seen = Arc::new(AtomicUsize::new(0));
/// let subscription = count.subscribe({
///     let seen = seen.clone();
///     move |_op| { seen.fetch_add(1, Ordering::Relaxed); }
/// });
/// count.set(1)?;
/// drop(subscription);
/// count.set(2)?;
/// assert_eq!(seen.load(Ordering::Relaxed), 1);
/// # Ok::<(), pinned::observable::ObservableError>(())
/// ```
#[must_use = "the subscription ends when this is dropped; keep it, or call `forever`"]
pub struct Subscription {
    node: Weak<Node>,
    id: u64,
}

impl Subscription {
    /// Keeps the subscription for as long as the observable lives.
    ///
    /// ```
    /// let count = pinned::Observable::new(0)?;
    /// count.subscribe(|op| println!("{op:?}")).forever();
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// ```
    pub fn forever(mut self) {
        self.node = Weak::new();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(node) = self.node.upgrade() else {
            return;
        };
        // Dropped after the lock is released: it holds whatever the callback holds.
        let _ended = node.locked(|held| {
            let listeners = &mut node.state(held).listeners;
            let at = listeners.iter().position(
                |listener| matches!(listener, Listener::Subscriber { id, .. } if *id == self.id),
            );
            at.map(|at| listeners.remove(at))
        });
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Subscription").finish_non_exhaustive()
    }
}

/// Subscribes, and returns what `at_start` reads under the same hold of the lock.
pub(super) fn subscribe<R>(
    node: &Arc<Node>,
    callback: impl Fn(&Op) + Send + Sync + 'static,
    at_start: impl FnOnce(&Held) -> R,
) -> (Subscription, R) {
    let id = fresh_id();
    let callback = Arc::new(callback);
    let start = node.locked(|held| {
        node.state(held)
            .listeners
            .push(Listener::Subscriber { id, callback });
        at_start(held)
    });
    let node = Arc::downgrade(node);
    (Subscription { node, id }, start)
}
