//! The time by which the thread and its callers watch for each other.

use std::time::Instant;

/// What time it is. The store has no domain: it changes nothing but how long somebody looks out before he sleeps.
#[allow(
    clippy::disallowed_methods,
    reason = "how long somebody watches before he sleeps; nobody could see it but by its speed"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}
