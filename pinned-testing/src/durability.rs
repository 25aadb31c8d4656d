//! A state store that parks its receipts.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinned::BoxError;
use pinned::durability::{Durability, EffectLog};
use tokio::sync::watch;

use crate::valve::Valve;

/// Stands in for a state store: keeps nothing, and confirms what the test lets it confirm.
///
/// ```
/// # use pinned::{PinnedWorker, pinned_api, route};
/// # #[derive(Default)] struct Room;
/// # #[pinned_api("/rooms")]
/// # impl Room {
/// #     #[route::get("/")] async fn name(&self) -> &'static str { "a room" }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// use pinned_testing::{BarrierDurability, TestApp};
///
/// let store = BarrierDurability::new();
/// let builder = PinnedWorker::builder().host::<Room>("/rooms");
/// let app = TestApp::start(builder.durability(store.clone())).await?;
/// app.client().get("/rooms/blue").send().await;
///
/// store.hold();
/// let (closed, ()) = tokio::join!(app.shutdown(), async {
///     store.parked().await;
///     // The close waits for its last write to be durable.
///     store.release();
/// });
/// closed?;
/// assert!(store.log("/rooms", "blue").is_some_and(|log| log.is_disposed()));
/// # Ok(())
/// # }
/// ```
pub struct BarrierDurability {
    shared: Arc<Shared>,
    logs: Mutex<Vec<Arc<BarrierLog>>>,
}

struct Shared {
    valve: Valve,
    failed: Mutex<bool>,
}

/// The log of one instance, as its host has driven it.
pub struct BarrierLog {
    namespace: String,
    id: String,
    shared: Arc<Shared>,
    epochs: Mutex<Vec<u64>>,
    disposed: watch::Sender<bool>,
}

// ===== impl BarrierDurability =====

impl BarrierDurability {
    /// A store that confirms everything at once.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::new(Shared {
                valve: Valve::new(),
                failed: Mutex::new(false),
            }),
            logs: Mutex::default(),
        })
    }

    /// Parks every wait from now on, until [`BarrierDurability::release`].
    pub fn hold(&self) {
        self.shared.valve.hold();
    }

    /// Lets go of the waits that are parked, and parks no more.
    pub fn release(&self) {
        self.shared.valve.release();
    }

    /// Waits until a wait is parked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn parked(&self) {
        self.shared.valve.parked().await;
    }

    /// Fails every wait that is not over yet, parked ones when they are let go.
    pub fn fail(&self) {
        *self.shared.failed.lock() = true;
    }

    /// Every log that was opened, in order.
    #[must_use]
    pub fn logs(&self) -> Vec<Arc<BarrierLog>> {
        self.logs.lock().clone()
    }

    /// The log that was opened last for `id` under `namespace`.
    #[must_use]
    pub fn log(&self, namespace: &str, id: &str) -> Option<Arc<BarrierLog>> {
        let logs = self.logs.lock();
        let log = logs
            .iter()
            .rev()
            .find(|log| log.namespace == namespace && log.id == id)?;
        Some(Arc::clone(log))
    }
}

impl Durability for BarrierDurability {
    fn open(&self, namespace: &str, id: &str, epoch: u64) -> Arc<dyn EffectLog> {
        let log = Arc::new(BarrierLog {
            namespace: namespace.to_owned(),
            id: id.to_owned(),
            shared: Arc::clone(&self.shared),
            epochs: Mutex::new(vec![epoch]),
            disposed: watch::Sender::new(false),
        });
        self.logs.lock().push(Arc::clone(&log));
        log
    }
}

impl fmt::Debug for BarrierDurability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierDurability")
            .field("logs", &self.logs())
            .finish_non_exhaustive()
    }
}

// ===== impl BarrierLog =====

impl BarrierLog {
    /// The namespace, with its slash.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The epoch that it was opened at, and those that it was moved to.
    #[must_use]
    pub fn epochs(&self) -> Vec<u64> {
        self.epochs.lock().clone()
    }

    /// Whether its host has disposed of it: the instance is gone.
    #[must_use]
    pub fn is_disposed(&self) -> bool {
        *self.disposed.borrow()
    }

    /// Waits until its host has disposed of it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn disposed(&self) {
        // `self` keeps the sender.
        let _ = self
            .disposed
            .subscribe()
            .wait_for(|disposed| *disposed)
            .await;
    }
}

impl EffectLog for BarrierLog {
    fn advance_epoch(&self, epoch: u64) {
        self.epochs.lock().push(epoch);
    }

    fn wait(&self) -> BoxFuture<'static, Result<(), BoxError>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            shared.valve.pass().await;
            if *shared.failed.lock() {
                return Err("the test fails the store".into());
            }
            Ok(())
        })
    }

    fn dispose(&self) {
        self.disposed.send_replace(true);
    }
}

impl fmt::Debug for BarrierLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierLog")
            .field("namespace", &self.namespace)
            .field("id", &self.id)
            .field("epochs", &self.epochs())
            .field("disposed", &self.is_disposed())
            .finish_non_exhaustive()
    }
}
