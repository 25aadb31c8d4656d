//! When to register again (W6).

use std::time::Duration;

use crate::domain::Rng;

const LONGEST: Duration = Duration::from_secs(30);
/// What a deferral without a usable `Retry-After` counts as.
const DEFERRED: Duration = Duration::from_secs(1);
const SHORTEST_DEFERRAL: f64 = 0.05;
const MOST_DOUBLINGS: u32 = 16;
const LEAST_JITTER: f64 = 0.3;

/// Counts failed and deferred registrations, and says how long to wait after the latest.
pub(super) struct Backoff {
    interval: Duration,
    rng: Rng,
    failures: u32,
    /// What the last answer asked for: it holds for that attempt alone (W6.4).
    deferral: Option<Duration>,
}

impl Backoff {
    pub(super) fn new(interval: Duration, rng: Rng) -> Self {
        Self {
            interval,
            rng,
            failures: 0,
            deferral: None,
        }
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.deferral = None;
    }

    pub(super) fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.deferral = None;
    }

    /// A 503; how many attempts in a row have come to nothing.
    pub(super) fn deferred(&mut self, retry_after: Option<&str>) -> u32 {
        self.failed();
        self.deferral = Some(seconds(retry_after));
        self.failures
    }

    /// How long after the start of the latest attempt the next one begins.
    pub(super) fn delay(&self) -> Duration {
        if self.failures == 0 {
            return self.interval;
        }
        let (base, doublings, jitter) = match self.deferral {
            // What the control plane asks for is a floor; the workers are spread out above it (W6.5).
            Some(base) => (base, self.failures - 1, 1.0..2.0 - LEAST_JITTER),
            None => (self.interval, self.failures, LEAST_JITTER..1.0),
        };
        doubled(base, doublings)
            .min(LONGEST)
            .mul_f64(self.rng.uniform(jitter))
    }
}

fn doubled(base: Duration, times: u32) -> Duration {
    base.saturating_mul(1 << times.min(MOST_DOUBLINGS))
}

/// `Retry-After` as a decimal; dates and nonsense count as missing.
fn seconds(retry_after: Option<&str>) -> Duration {
    let seconds = retry_after
        .and_then(|text| text.trim().parse::<f64>().ok())
        .filter(|seconds| seconds.is_finite());
    match seconds {
        Some(seconds) => {
            Duration::try_from_secs_f64(seconds.max(SHORTEST_DEFERRAL)).unwrap_or(LONGEST)
        }
        None => DEFERRED,
    }
}
