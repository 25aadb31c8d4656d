//! The loop: it registers, and then sends heartbeats until the session is closed.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use pinned_wire::registry::Secret;
use tokio::time::Instant;

use super::Registration;
use crate::domain::{panic_message, saturating_add};
use crate::fleet::backoff::Backoff;
use crate::fleet::metrics::control_failed;
use crate::fleet::session::{Challenge, Next};

/// What a call to the registry came to.
pub(super) enum Step {
    /// Wait for the next beat, or as long as failures ask for.
    Wait,
    /// Go on at once.
    Now,
}

impl Registration {
    pub(super) async fn run(self: Arc<Self>) {
        let Ok(rng) = self.calls.domain.rng("register-backoff") else {
            unreachable!("the label is not empty")
        };
        let mut backoff = Backoff::new(self.membership.heartbeat_interval, rng);
        loop {
            let crash = AssertUnwindSafe(self.beat_on(&mut backoff))
                .catch_unwind()
                .await;
            let Err(panic) = crash else { return };
            self.crashed(&*panic);
            let now = self.calls.domain.monotonic();
            self.pause(saturating_add(now, self.membership.heartbeat_interval))
                .await;
        }
    }

    /// Waits until then, or for news.
    async fn pause(&self, until: Instant) {
        tokio::select! {
            biased;
            () = self.wake.notified() => {}
            () = self.calls.domain.sleep_until(until) => {}
        }
    }

    fn crashed(&self, panic: &(dyn Any + Send)) {
        control_failed("registration_loop", "crashed");
        tracing::error!(
            target: "pinned::fleet",
            panic = panic_message(panic),
            "the registration loop crashed; it starts again"
        );
    }

    async fn beat_on(self: &Arc<Self>, backoff: &mut Backoff) {
        let domain = &self.calls.domain;
        loop {
            // The moment before anything is sent: a slow answer never lengthens the lease, or the pause (W4.2, W6.6).
            let started = domain.monotonic();
            let challenge = Challenge {
                question: domain.token_hex(16),
                answer: Secret::new(domain.token_hex(16)),
            };
            let step = match self.session.next(challenge.clone()) {
                Next::Nothing => return,
                Next::Register(opening) => {
                    self.register(opening, challenge, started, backoff).await
                }
                Next::Beat(beat) => self.heartbeat(beat, challenge, started).await,
            };
            if matches!(step, Step::Now) {
                continue;
            }
            let delay = if self.session.id().is_some() {
                self.membership.heartbeat_interval
            } else {
                backoff.delay()
            };
            self.pause(saturating_add(started, delay)).await;
        }
    }
}
