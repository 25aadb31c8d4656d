//! For how long a worker may serve (W7).

use std::time::Duration;

use tokio::time::Instant;

/// The lease of a worker, by its own clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    deadline: Option<Instant>,
    term: Duration,
    buffer: Duration,
    unhealthy: bool,
    pub(super) flaps: u64,
}

impl Lease {
    /// None was granted yet: healthy, and without an end (W7.1).
    pub(super) fn new(buffer: Duration) -> Self {
        Self {
            deadline: None,
            // What fences outlive when nothing was ever granted (H12.7).
            term: Duration::from_secs(30),
            buffer,
            unhealthy: false,
            flaps: 0,
        }
    }

    /// A grant of `term`, counted from when it was asked for, and cut to `cap` (W7.2); when it ends.
    pub(super) fn renew(
        &mut self,
        asked: Instant,
        term: Duration,
        cap: Option<Instant>,
    ) -> Instant {
        let full = pinned_domain::saturating_add(asked, term);
        let deadline = cap.map_or(full, |cap| cap.min(full));
        self.deadline = Some(deadline);
        self.term = term;
        self.unhealthy = false;
        deadline
    }

    pub(super) fn is_healthy(&self, now: Instant) -> bool {
        self.deadline
            .is_none_or(|deadline| now + self.buffer < deadline)
    }

    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Counts each time that the lease becomes unhealthy (W7.4).
    pub(super) fn look(&mut self, now: Instant) {
        if !self.unhealthy && !self.is_healthy(now) {
            self.unhealthy = true;
            self.flaps += 1;
        }
    }

    /// When it becomes unhealthy.
    pub(super) fn next_edge(&self) -> Option<Instant> {
        let deadline = self.deadline.filter(|_| !self.unhealthy)?;
        Some(deadline.checked_sub(self.buffer).unwrap_or(deadline))
    }

    /// For how long a fence is remembered (H12.7).
    pub(super) fn fence_age(&self) -> Duration {
        2 * self.term
    }
}
