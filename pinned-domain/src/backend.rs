//! The seam at which a simulation takes the place of the real world.

use std::time::SystemTime;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::Rng;

/// What a [`Domain`](crate::Domain) is made of: implement it to run pinned in a world of your own.
///
/// This is the seam for simulation. An implementation decides what time it is, when a sleep ends, in which order
/// tasks run and what the dice say; the code above it cannot tell the difference. The usual one stands on tokio's
/// paused clock, adds the virtual time since its start to a fixed wall epoch, and keeps its streams in one
/// [`RngStreams`](crate::RngStreams).
///
/// Methods may be called from any thread, also from inside a task of the same domain, and must not block.
pub trait DomainBackend: Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> SystemTime;

    /// The monotonic clock: never goes back, and is the one that deadlines are kept on.
    fn monotonic(&self) -> Instant;

    /// A future that ends once [`monotonic`](Self::monotonic) has reached `at`.
    ///
    /// Dropping it forgets the timer.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;

    /// Starts `task` beside the caller; it is not polled before this returns.
    ///
    /// A panic never leaves `task`. Dropping it unfinished, at any time, counts as cancelling it.
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Box<dyn SpawnedTask>;

    /// The one stream of random numbers behind `label`, which is never empty.
    ///
    /// Every call with the same label shares one stream, and draws under one label leave all others where they
    /// were.
    fn rng(&self, label: &str) -> Rng;

    /// Fills `token` with the bytes of a new token.
    ///
    /// Tokens are secrets; only a simulation may make them predictable.
    fn fill_token(&self, token: &mut [u8]);
}

/// A task that a [`DomainBackend`] has started.
pub trait SpawnedTask: Send + Sync + 'static {
    /// Asks for the task to be dropped at its next await; does nothing once it has ended.
    fn abort(&self);

    /// Whether the task has ended, in whichever way.
    fn is_finished(&self) -> bool;
}
