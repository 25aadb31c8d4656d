//! Reading the clocks, sleeping, and waits with an end.

use std::future::Future;
use std::time::{Duration, SystemTime};

use futures_util::future::Either;
use tokio::time::Instant;

use crate::handle::World;
use crate::{Domain, Event};

/// As far ahead as a deadline can be: some thirty years, so that no duration overflows the clock.
pub const FAR_FUTURE: Duration = Duration::from_secs(86_400 * 365 * 30);

/// The time given to [`Domain::timeout`] ran out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time limit has passed")]
pub struct Elapsed;

/// `from + after`, where an `after` beyond [`FAR_FUTURE`] counts as that: a deadline from a duration that somebody else
/// chose.
///
/// ```
/// # use std::time::Duration;
/// # use pinned_domain::{Domain, FAR_FUTURE, saturating_add};
/// let now = Domain::real().monotonic();
/// assert_eq!(saturating_add(now, Duration::MAX), now + FAR_FUTURE);
/// ```
#[must_use]
#[inline]
pub fn saturating_add(from: Instant, after: Duration) -> Instant {
    from + after.min(FAR_FUTURE)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the domain is where the ban on direct clocks ends"
)]
impl Domain {
    /// The wall clock: for what people and other machines read, never for deadlines.
    #[must_use]
    #[inline]
    pub fn now(&self) -> SystemTime {
        match &self.world {
            World::Real(_) => SystemTime::now(),
            World::Custom(backend) => backend.now(),
        }
    }

    /// The monotonic clock, on which every deadline is kept.
    #[must_use]
    #[inline]
    pub fn monotonic(&self) -> Instant {
        match &self.world {
            World::Real(_) => Instant::now(),
            World::Custom(backend) => backend.monotonic(),
        }
    }

    /// What the wall clock shows when the monotonic clock reads `at`, as far as that can be known now.
    ///
    /// For telling others about a deadline. What lies before the Unix epoch is told as the epoch.
    #[must_use]
    pub fn wall_time(&self, at: Instant) -> SystemTime {
        let (wall, now) = (self.now(), self.monotonic());
        match at.checked_duration_since(now) {
            Some(left) => wall + left,
            None => wall.checked_sub(now - at).unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }

    /// Ends after `duration`, counted from this call rather than from the first poll.
    ///
    /// # Panics
    /// On the real domain, when called outside a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future forgets the timer.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.sleep_until(saturating_add(self.monotonic(), duration))
    }

    /// Ends once [`monotonic`](Self::monotonic) has reached `at`.
    ///
    /// # Panics
    /// On the real domain, when called outside a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future forgets the timer.
    pub fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send + 'static + use<> {
        match &self.world {
            World::Real(_) => Either::Left(tokio::time::sleep_until(at)),
            World::Custom(backend) => Either::Right(backend.sleep_until(at)),
        }
    }

    /// Runs `future` for at most `limit`; one that is ready at the limit has made it.
    ///
    /// # Errors
    /// [`Elapsed`] when `future` was not done in time; it has been dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future` itself.
    ///
    /// ```
    /// # use std::{future, time::Duration};
    /// # use pinned_domain::Domain;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let domain = Domain::real();
    /// assert_eq!(domain.timeout(Duration::from_secs(1), async { 7 }).await, Ok(7));
    /// assert!(domain.timeout(Duration::ZERO, future::pending::<()>()).await.is_err());
    /// # }
    /// ```
    pub async fn timeout<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        let sleep = self.sleep(limit);
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = sleep => Err(Elapsed),
        }
    }

    /// Waits until `event` is set or `timeout` has passed, and tells whether the event is set at the end.
    ///
    /// It does not tell who won: an event that was set and cleared again in the meantime ends the wait with
    /// `false`, and one that is set at the very end of the time counts. A `timeout` of zero is one look.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&self, event: &Event, timeout: Duration) -> bool {
        // Either way the wait is over; what counts is the event.
        let _ = self.timeout(timeout, event.wait()).await;
        event.is_set()
    }
}
