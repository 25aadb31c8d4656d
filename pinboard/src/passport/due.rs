//! Doing something now and then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pinned_domain::Domain;
use tokio::time::Instant;

/// When something is due again, on the monotonic clock; asking takes no lock.
#[derive(Debug)]
pub(super) struct Due {
    origin: Instant,
    /// In milliseconds since the origin.
    at: AtomicU64,
}

impl Due {
    /// Due at once.
    pub(super) fn now(domain: &Domain) -> Self {
        Self {
            origin: domain.monotonic(),
            at: AtomicU64::new(0),
        }
    }

    /// Whether it is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.millis(now) >= self.at.load(Ordering::Relaxed)
    }

    /// Puts it off until `after` has passed.
    pub(super) fn put_off(&self, now: Instant, after: Duration) {
        let at = self.millis(now).saturating_add(whole_millis(after));
        self.at.store(at, Ordering::Relaxed);
    }

    /// Whether it is due, and then puts it off: among those who ask at once, one hears yes.
    pub(super) fn take(&self, now: Instant, after: Duration) -> bool {
        let millis = self.millis(now);
        let due = self.at.load(Ordering::Relaxed);
        let next = millis.saturating_add(whole_millis(after));
        millis >= due
            && self
                .at
                .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    fn millis(&self, now: Instant) -> u64 {
        whole_millis(now.saturating_duration_since(self.origin))
    }
}

fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
