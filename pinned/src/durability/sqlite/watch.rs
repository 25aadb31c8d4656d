//! How the thread and its callers look out for each other before they sleep.

use std::hint;
use std::time::{Duration, Instant};

use tokio::sync::oneshot::Receiver;
use tokio::task;

/// How long one that waits alone looks for its answer itself: as long as a transaction takes on a disk that flushes at
/// once. Waking an idle core takes a quarter of that. Its task is not woken by another core meanwhile, but by its own, once
/// that has done what else is ready.
pub(super) const WATCH: Duration = Duration::from_micros(150);

/// How long it keeps its core each time. Between two polls a runtime looks for work, and may wake another core for that.
const GLANCE: Duration = Duration::from_micros(10);

/// What time it is, for nothing but how long somebody looks out.
#[allow(
    clippy::disallowed_methods,
    reason = "the store has no domain, and what is watched is the real disk: nobody sees it but by its speed"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Until `answered` is there, or long enough. It is not polled: the thread would have another core woken for the waker.
///
/// # Cancel safety
///
/// Cancel safe: nothing is taken out.
pub(super) async fn watch<T>(answered: &Receiver<T>) {
    let start = now();
    while !glance(answered) && now() - start < WATCH {
        task::yield_now().await;
    }
}

fn glance<T>(answered: &Receiver<T>) -> bool {
    let start = now();
    while answered.is_empty() {
        if now() - start >= GLANCE {
            return false;
        }
        hint::spin_loop();
    }
    true
}
