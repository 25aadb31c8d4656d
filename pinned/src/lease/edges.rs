//! The moments at which a lease turns unhealthy and expires, readable without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// No acknowledgement yet: the moment never comes.
const NEVER: u64 = u64::MAX;

/// Both moments, mirrored from the state behind the lock.
///
/// Each is read alone, so the two need not change together; each always holds a value that was true at its time.
pub(super) struct Edges {
    /// What the mirrored moments count from.
    origin: Instant,
    unhealthy: AtomicU64,
    expired: AtomicU64,
}

impl Edges {
    pub(super) fn never(origin: Instant) -> Self {
        Self {
            origin,
            unhealthy: AtomicU64::new(NEVER),
            expired: AtomicU64::new(NEVER),
        }
    }

    /// Mirrors a lease that is unhealthy `buffer` before `deadline`.
    ///
    /// Moments before the origin are moved up to it: they have passed either way.
    pub(super) fn store(&self, deadline: Instant, buffer: Duration) {
        let remaining = deadline.saturating_duration_since(self.origin);
        self.unhealthy
            .store(nanos(remaining.saturating_sub(buffer)), Ordering::Release);
        self.expired.store(nanos(remaining), Ordering::Release);
    }

    pub(super) fn unhealthy(&self, now: impl FnOnce() -> Instant) -> bool {
        self.passed(&self.unhealthy, now)
    }

    pub(super) fn expired(&self, now: impl FnOnce() -> Instant) -> bool {
        self.passed(&self.expired, now)
    }

    /// When the lease turns unhealthy, unless it never does.
    pub(super) fn unhealthy_at(&self) -> Option<Instant> {
        match self.unhealthy.load(Ordering::Acquire) {
            NEVER => None,
            moment => Some(self.origin + Duration::from_nanos(moment)),
        }
    }

    fn passed(&self, moment: &AtomicU64, now: impl FnOnce() -> Instant) -> bool {
        match moment.load(Ordering::Acquire) {
            NEVER => false,
            moment => now().saturating_duration_since(self.origin) >= Duration::from_nanos(moment),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).map_or(NEVER - 1, |nanos| nanos.min(NEVER - 1))
}
