//! How fast wakes begin.

use std::time::Duration;

use tokio::time::Instant;

/// A bucket of tokens that fills at a steady rate; it never holds more than it began with.
#[derive(Debug)]
pub(super) struct Pace {
    /// Between two tokens.
    each: Duration,
    /// How far behind `now` the next token may lie: a full bucket.
    depth: Duration,
    /// When the next token is there.
    next: Instant,
}

impl Pace {
    /// `per_second` is not zero.
    pub(super) fn new(per_second: u32, burst: u32, now: Instant) -> Self {
        let each = Duration::from_secs(1) / per_second;
        let depth = each * burst.saturating_sub(1);
        Self {
            each,
            depth,
            next: now.checked_sub(depth).unwrap_or(now),
        }
    }

    /// Whether there is a token; when there will be one, if not.
    pub(super) fn ready(&self, now: Instant) -> Result<(), Instant> {
        if self.next > now {
            Err(self.next)
        } else {
            Ok(())
        }
    }

    /// Takes a token that is [there](Self::ready).
    pub(super) fn take(&mut self, now: Instant) {
        let fullest = now.checked_sub(self.depth).unwrap_or(self.next);
        self.next = self.next.max(fullest) + self.each;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
        let start = pinned_domain::Domain::real().monotonic();
        let mut pace = Pace::new(10, 3, start);
        let taken = |pace: &mut Pace, now| {
            let take = |_: &u32| pace.ready(now).map(|()| pace.take(now)).is_ok();
            (0..100).take_while(take).count()
        };
        assert_eq!(taken(&mut pace, start), 3);
        assert_eq!(pace.ready(start), Err(start + Duration::from_millis(100)));
        assert_eq!(taken(&mut pace, start + Duration::from_millis(250)), 2);
        // However long nothing was taken, the bucket holds no more than it did.
        assert_eq!(taken(&mut pace, start + Duration::from_secs(60)), 3);
    }
}
