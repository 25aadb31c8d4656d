//! The ordered log of one instance's durable effects (D13 to D17).
//!
//! | file | what |
//! |---|---|
//! | `log` | what is enlisted, how far it is durable, who waits; one state machine behind one lock |
//! | `segment` | the lock: what happens within one segment reaches the log as one write per row |
//! | `flusher` | the one task that carries the log to the store |
//! | `receipt` | the promise of a position |
//! | `error` | why a log confirms nothing any more |

mod error;
mod flusher;
mod log;
mod receipt;
mod segment;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::ReentrantMutex;

use super::claim::{Claim, InstanceKey};
use super::store::{StateStore, StoreError};
use crate::error::BoxError;
use log::{Dropped, LogCell};

pub use error::{FrontierError, FrontierFailure};
pub use receipt::{Receipt, Wait};
pub(crate) use segment::Segment;

/// What a frontier asks of the instance that it belongs to.
pub(crate) trait FrontierOwner: Send + Sync + 'static {
    /// Effects can no longer be confirmed: the instance is to end (D16.1).
    fn frontier_failed(self: Arc<Self>, error: &FrontierError);

    /// Runs the flusher as durable work of the instance (D17).
    fn spawn_flusher(self: Arc<Self>, flush: BoxFuture<'static, ()>);
}

/// The ordered log of one instance's durable effects: rows of its trays and fields, and effects of its own code.
///
/// What is enlisted reaches the store in order, without gaps. [`Frontier::wait`] resolves once everything enlisted so far
/// is durable: it survives any crash, and later activations read it or something newer (D15.3).
///
/// ```
/// # use pinned::{BoxError, Context, pinned_api, route};
/// # #[derive(Default)] struct Room;
/// # async fn publish(text: String) -> Result<(), BoxError> { Ok(()) }
/// #[pinned_api("/rooms")]
/// impl Room {
///     #[route::post("/say")]
///     async fn say(&mut self, ctx: Context, text: String) -> pinned::axum::response::Result<()> {
///         // Runs once everything before it is durable.
///         let published = ctx.frontier()?.enlist(publish(text))?;
///         Ok(published.await?)
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Frontier {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn StateStore>,
    /// Whether runs of row writes go out as one batch (D14.3, D14.4).
    batches: bool,
    instance: InstanceKey,
    epoch: AtomicU64,
    owner: OnceLock<Weak<dyn FrontierOwner>>,
    log: ReentrantMutex<LogCell>,
    /// The position of the effect that was enlisted or staged last: written under the lock of the log, and read without it,
    /// as whoever is within a segment of another log must not wait for this one.
    position: AtomicU64,
}

impl Frontier {
    /// The empty log of an activation at `epoch`.
    pub(crate) fn new(store: Arc<dyn StateStore>, instance: InstanceKey, epoch: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                batches: store.batches(),
                store,
                instance,
                epoch: AtomicU64::new(epoch),
                owner: OnceLock::new(),
                log: ReentrantMutex::new(LogCell::default()),
                position: AtomicU64::new(0),
            }),
        }
    }

    /// Whose log it is; the first answer stands.
    pub(crate) fn attach(&self, owner: Weak<dyn FrontierOwner>) {
        let _ = self.shared.owner.set(owner);
    }

    /// Enlists an effect of the caller's own: `effect` runs once everything before it is durable, and what is enlisted
    /// after it waits for its end (D14.5). If it fails, the log fails, and with it the instance. One that waits for itself,
    /// or for what is enlisted after it, never ends.
    ///
    /// It is not run again after a crash: keep what must be done in a tray.
    ///
    /// # Errors
    ///
    /// [`FrontierError`]: the log has failed or is closed. `effect` does not run.
    pub fn enlist<F, E>(&self, effect: F) -> Result<Receipt, FrontierError>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let effect = async move { effect.await.map_err(Into::into) }.boxed();
        // Within the segment: what others enlist right after it is not this receipt's affair.
        self.segment(|segment| segment.enlist_effect(effect).map(|()| self.receipt()))?
    }

    /// Runs `changes` as one segment: what it changes of trays and fields of this instance reaches the store together,
    /// one write per row, and nobody else changes them in between.
    ///
    /// ```
    /// # use pinned::{Persistent, durability::{Frontier, FrontierError}};
    /// # fn demo(frontier: &Frontier, from: &mut Persistent<u64>, to: &mut Persistent<u64>) -> Result<(), FrontierError> {
    /// frontier.atomic(|| {
    ///     from.update(|from| *from -= 1);
    ///     to.update(|to| *to += 1);
    /// })
    /// # }
    /// ```
    ///
    /// A panic in `changes` after the first of them ends the instance, and the store keeps none of them.
    ///
    /// # Errors
    ///
    /// [`FrontierError`]: the log has failed or is closed, or this is within a segment of another instance. `changes` does
    /// not run.
    pub fn atomic<R>(&self, changes: impl FnOnce() -> R) -> Result<R, FrontierError> {
        self.segment(|_| changes())
    }

    /// The promise of everything enlisted so far (D15.1).
    pub fn receipt(&self) -> Receipt {
        Receipt::new(self.clone(), self.position())
    }

    pub(crate) fn receipt_for(&self, position: u64) -> Receipt {
        Receipt::new(self.clone(), position)
    }

    /// The position of the effect that was enlisted last; 0 before the first (D13.3).
    pub fn position(&self) -> u64 {
        self.shared.position.load(Ordering::Acquire)
    }

    /// The position up to which everything is durable.
    pub(crate) fn durable(&self) -> u64 {
        self.shared.log.lock().durable()
    }

    /// Resolves once everything enlisted before the call is durable; at once when nothing is (D13.6).
    ///
    /// # Errors
    ///
    /// [`FrontierError`]: the log has failed or is closed; what was enlisted may or may not be durable (D15.4).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the wait alone; what was enlisted goes on.
    pub fn wait(&self) -> Wait {
        self.wait_for(self.position())
    }

    /// Resolves once everything at or before `position` is durable (D13.6).
    ///
    /// # Errors
    ///
    /// As [`Frontier::wait`].
    ///
    /// # Cancel safety
    ///
    /// As [`Frontier::wait`].
    pub fn wait_for(&self, position: u64) -> Wait {
        Wait::of(self.clone(), position)
    }

    /// The claim that operations carry now (D14.8).
    pub(crate) fn claim(&self) -> Claim {
        self.shared.claim()
    }

    pub(crate) fn store(&self) -> &Arc<dyn StateStore> {
        &self.shared.store
    }

    /// Whether both are the log of one activation.
    pub(crate) fn is_same_log(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Later operations, those enlisted already among them, carry `epoch` (D18.3). It never moves down.
    pub(crate) fn advance_epoch(&self, epoch: u64) {
        self.shared.epoch.fetch_max(epoch, Ordering::AcqRel);
    }

    /// Fails the log from outside: an effect that cannot even be enlisted.
    pub(crate) fn fail(&self, error: BoxError) {
        self.shared.fail(FrontierFailure::Effect(error));
    }

    /// Fails the log as a write would: the store has failed, and what it holds is not known.
    pub(crate) fn fail_store(&self, error: StoreError) {
        self.shared.fail(FrontierFailure::Store(error));
    }

    /// The instance is gone: refuses what comes later, lets go of what is queued, and fails who waits (D17.5, D17.6).
    pub(crate) fn close(&self) {
        let dropped = self.shared.log.lock().close();
        // Effects of the user's code, which may ask for this very lock.
        drop(dropped);
    }
}

impl Shared {
    fn claim(&self) -> Claim {
        Claim::new(self.instance.clone(), self.epoch.load(Ordering::Acquire))
    }

    fn owner(&self) -> Option<Arc<dyn FrontierOwner>> {
        self.owner.get()?.upgrade()
    }

    fn fail(&self, failure: FrontierFailure) {
        let failed = self.log.lock().fail(failure);
        self.failed(failed);
    }

    /// Tells everybody of a log that has just failed; called without its lock.
    fn failed(&self, failed: Option<(FrontierError, Dropped)>) {
        let Some((error, dropped)) = failed else {
            return;
        };
        drop(dropped);
        // Whoever takes a flusher away, by an abort or with the whole process, knows why (D16.7).
        if !matches!(error.failure(), Some(FrontierFailure::Cancelled)) {
            tracing::error!(
                target: "pinned::durability",
                instance_id = &*self.instance.id,
                namespace = &*self.instance.namespace,
                error = %crate::error::ErrorChain(&error),
                "durable effects can no longer be confirmed; the instance is aborted"
            );
        }
        if let Some(owner) = self.owner() {
            owner.frontier_failed(&error);
        }
    }
}

impl fmt::Debug for Frontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontier")
            .field("instance", &self.shared.instance)
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}
