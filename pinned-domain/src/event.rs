//! A flag that tasks can wait for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A flag that can be set, cleared, and waited for by any number of tasks; clones share it.
///
/// Wait with a limit through [`Domain::wait`](crate::Domain::wait).
///
/// ```
/// # use pinned_domain::Event;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let ready = Event::new();
/// ready.set();
/// ready.wait().await;
/// assert!(ready.is_set());
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Event {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    set: AtomicBool,
    changed: Notify,
}

impl Event {
    /// An event that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the event and wakes everyone who waits for it.
    pub fn set(&self) {
        self.shared.set.store(true, Ordering::Release);
        self.shared.changed.notify_waiters();
    }

    /// Clears the event; those whom an earlier [`set`](Self::set) has woken stay woken.
    pub fn clear(&self) {
        self.shared.set.store(false, Ordering::Release);
    }

    /// Whether the event is set now.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.shared.set.load(Ordering::Acquire)
    }

    /// Ends once the event is set, also when it has been cleared again before the waiter ran.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&self) {
        // Taken before the flag is read: a `set` between the two is then seen by one or the other.
        let changed = self.shared.changed.notified();
        if !self.is_set() {
            changed.await;
        }
    }
}

/// Waits until `done` holds. It is looked at again whenever `changed` notifies its waiters.
///
/// For a condition over state that has its own lock: whoever changes the state calls
/// [`notify_waiters`](Notify::notify_waiters) afterwards, and no change between the look and the wait is missed. Unlike
/// [`Event::wait`], it ends only when the condition holds at a look.
///
/// # Cancel safety
/// Cancel safe: nothing is taken before `done` has held.
///
/// ```
/// # use std::sync::Arc;
/// # use std::sync::atomic::{AtomicU32, Ordering};
/// # use pinned_domain::{Domain, until};
/// # use tokio::sync::Notify;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (left, changed) = (Arc::new(AtomicU32::new(1)), Arc::new(Notify::new()));
/// Domain::real().spawn({
///     let (left, changed) = (Arc::clone(&left), Arc::clone(&changed));
///     async move {
///         left.fetch_sub(1, Ordering::Release);
///         changed.notify_waiters();
///     }
/// });
/// until(&changed, || left.load(Ordering::Acquire) == 0).await;
/// # }
/// ```
pub async fn until(changed: &Notify, mut done: impl FnMut() -> bool) {
    loop {
        // Taken before the look, as in `Event::wait`.
        let changed = changed.notified();
        if done() {
            return;
        }
        changed.await;
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("set", &self.is_set())
            .finish()
    }
}
