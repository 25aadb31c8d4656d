//! The clock of a worker, which a test can stop, and the worker itself, which a test can stop as well.

use std::time::Duration;

use parking_lot::Mutex;
use pinned_domain::{Domain, until};
use tokio::sync::Notify;
use tokio::time::Instant;

/// What time it is for a worker.
pub(super) struct Clock {
    domain: Domain,
    hands: Mutex<Hands>,
    changed: Notify,
}

#[derive(Default)]
struct Hands {
    /// Since when it has stood still, by the domain's clock.
    stopped: Option<Instant>,
    /// How far it is behind.
    lost: Duration,
    /// Whether nothing of the worker runs.
    frozen: bool,
}

impl Clock {
    pub(super) fn new(domain: Domain) -> Self {
        Self {
            domain,
            hands: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        let hands = self.hands.lock();
        hands.stopped.unwrap_or_else(|| self.domain.monotonic()) - hands.lost
    }

    /// Ends once this clock shows `at`.
    pub(super) async fn sleep_until(&self, at: Instant) {
        loop {
            // Taken before the look, so that no change is missed.
            let changed = self.changed.notified();
            if self.now() >= at {
                return;
            }
            let (stopped, lost) = {
                let hands = self.hands.lock();
                (hands.stopped.is_some(), hands.lost)
            };
            if stopped {
                changed.await;
            } else {
                tokio::select! {
                    // In an order that a simulation repeats.
                    biased;
                    () = self.domain.sleep_until(at + lost) => {}
                    () = changed => {}
                }
            }
        }
    }

    pub(super) fn stop(&self) {
        let now = self.domain.monotonic();
        self.hands.lock().stopped.get_or_insert(now);
        self.changed.notify_waiters();
    }

    pub(super) fn go_on(&self) {
        let now = self.domain.monotonic();
        let mut hands = self.hands.lock();
        if let Some(stopped) = hands.stopped.take() {
            hands.lost += now - stopped;
        }
        drop(hands);
        self.changed.notify_waiters();
    }

    pub(super) fn freeze(&self, frozen: bool) {
        self.hands.lock().frozen = frozen;
        self.changed.notify_waiters();
    }

    /// Goes on when the worker runs.
    pub(super) async fn runs(&self) {
        until(&self.changed, || !self.hands.lock().frozen).await;
    }
}
