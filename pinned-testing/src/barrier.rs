//! A state store that parks its writes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinned::durability::{
    Claim, Doc, InstanceKey, MemoryStore, Row, RowFilter, RowOp, RowState, StateStore, StoreError,
    StoreFuture, TrayKey,
};

use crate::valve::Valve;

/// Rows in memory, whose writes land when the test lets them land (S11.1). A cheap handle; clones are the same store.
///
/// A write that is parked has not landed: this is the window that a crash would fall into. Reads go ahead.
///
/// ```
/// use pinned::durability::{Claim, Doc, InstanceKey, StateStore, TrayKey};
/// use pinned_testing::BarrierStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), pinned::durability::StoreError> {
/// let store = BarrierStore::new();
/// store.hold();
/// let claim = Claim::new(InstanceKey::new("/rooms", "blue"), 1);
/// let write = store.set_tray(claim, TrayKey::new("work", "~"), true, Doc::empty());
/// let (written, ()) = tokio::join!(write, async {
///     store.parked().await;
///     assert!(store.rows("/rooms", "blue").is_empty());
///     store.release();
/// });
/// written?;
/// assert_eq!(store.rows("/rooms", "blue").len(), 1);
/// # Ok(())
/// # }
/// ```
///
/// Hand it to [`WorkerBuilder::store`](pinned::WorkerBuilder::store); that of a [`TestInstance`](crate::TestInstance) is
/// there already.
#[derive(Clone)]
pub struct BarrierStore {
    shared: Arc<Shared>,
}

struct Shared {
    memory: MemoryStore,
    valve: Valve,
    failing: AtomicBool,
}

impl BarrierStore {
    /// An empty store, which holds nothing up.
    #[must_use]
    pub fn new() -> Self {
        Self::on(MemoryStore::new())
    }

    /// One whose rows are kept in `memory`.
    #[must_use]
    pub fn on(memory: MemoryStore) -> Self {
        Self {
            shared: Arc::new(Shared {
                memory,
                valve: Valve::new(),
                failing: AtomicBool::new(false),
            }),
        }
    }

    /// Parks every write from now on, before it lands, until [`BarrierStore::release`].
    pub fn hold(&self) {
        self.shared.valve.hold();
    }

    /// Lets the writes land that are parked, and parks no more.
    pub fn release(&self) {
        self.shared.valve.release();
    }

    /// Waits until a write is parked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn parked(&self) {
        self.shared.valve.parked().await;
    }

    /// Fails every write that has not landed yet, parked ones when they are let go: nothing changes any more.
    pub fn fail(&self) {
        self.shared.failing.store(true, Ordering::Release);
    }

    /// What has landed: rows and epochs can be read there, past the barrier and without acquiring.
    #[must_use]
    pub fn memory(&self) -> &MemoryStore {
        &self.shared.memory
    }

    /// The rows of an instance that have landed.
    #[must_use]
    pub fn rows(&self, namespace: &str, id: &str) -> Vec<Row> {
        let instance = InstanceKey::new(namespace, id);
        self.shared.memory.rows(&instance)
    }

    fn write(
        &self,
        op: impl FnOnce(&MemoryStore) -> StoreFuture<()> + Send + 'static,
    ) -> StoreFuture<()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            shared.valve.pass().await;
            if shared.failing.load(Ordering::Acquire) {
                return Err(StoreError::failed("the test fails the store"));
            }
            op(&shared.memory).await
        })
    }
}

impl StateStore for BarrierStore {
    fn setup(&self) -> StoreFuture<()> {
        self.shared.memory.setup()
    }

    fn hold_alone(&self) -> StoreFuture<()> {
        self.shared.memory.hold_alone()
    }

    fn batches(&self) -> bool {
        self.shared.memory.batches()
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        self.write(move |memory| memory.set_tray(claim, key, marked, doc))
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        self.write(move |memory| memory.delete_tray(claim, key))
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        self.shared.memory.get_tray(claim, key)
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.shared.memory.list(claim, filter)
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        self.write(move |memory| memory.apply_batch(claim, ops))
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        self.shared.memory.marked_instances(after, limit)
    }

    fn describe(&self) -> String {
        "memory, behind a barrier".to_owned()
    }
}

impl Default for BarrierStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for BarrierStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierStore")
            .field("memory", &self.shared.memory)
            .finish_non_exhaustive()
    }
}
