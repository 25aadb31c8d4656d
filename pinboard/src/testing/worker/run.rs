//! The registration loop (W4.2, W6).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::core::Core;
use super::registration::RegistryFailure;
use super::state::Phase;

/// The longest pause between two attempts.
const LONGEST: f64 = 30.0;

impl Core {
    /// Registers, keeps the session, and registers again when it is lost, until the worker is over.
    pub(super) async fn run(self: Arc<Self>) {
        let mut failures = 0_u32;
        loop {
            let started = self.clock.now();
            let interval = self.options.heartbeat_interval;
            let draining = self.state.lock().own_drain.is_some();
            let registered = self.state.lock().session.is_some();
            let wait = if registered {
                match self.heartbeat().await {
                    Err(RegistryFailure::Lost) => continue,
                    // A failed one keeps the session and the cadence (W4.9).
                    _ => interval,
                }
            } else {
                match self.register().await {
                    Ok(_) => {
                        failures = 0;
                        interval
                    }
                    Err(failure) => {
                        failures = failures.saturating_add(1);
                        self.backoff(failures, &failure)
                    }
                }
            };
            if self.phase() != Phase::Serving {
                return;
            }
            self.pause(started + wait, draining).await;
            if self.phase() != Phase::Serving {
                return;
            }
        }
    }

    /// Waits for the next attempt. A drain that has begun or been revoked is told at once (W4.11).
    async fn pause(&self, at: Instant, draining: bool) {
        let news = pinned_domain::until(&self.changed, || {
            let state = self.state.lock();
            state.phase != Phase::Serving || state.own_drain.is_some() != draining
        });
        tokio::select! {
            // In an order that a simulation repeats.
            biased;
            () = self.clock.sleep_until(at) => {}
            () = news => {}
        }
    }

    /// How long after the `n`th failed attempt the next one comes (W6.2, W6.3).
    fn backoff(&self, n: u32, failure: &RegistryFailure) -> Duration {
        let doubled = |base: f64, times: u32| base * 2_f64.powi(times.min(16).cast_signed());
        let (floor, plain) = match failure {
            RegistryFailure::Deferred { retry_after } => {
                let asked = retry_after.map_or(1.0, |after| after.as_secs_f64());
                let base = asked.max(0.05);
                (asked, doubled(base, n - 1).min(LONGEST))
            }
            _ => {
                let interval = self.options.heartbeat_interval.as_secs_f64();
                (0.0, doubled(interval, n).min(LONGEST))
            }
        };
        let jitter = match self.domain.rng("register-backoff") {
            Ok(rng) => rng.uniform(0.3..1.0),
            Err(_) => 1.0,
        };
        Duration::from_secs_f64((plain * jitter).max(floor))
    }
}
