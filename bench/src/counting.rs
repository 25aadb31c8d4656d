//! A store that counts what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use pinned::durability::{
    Claim, Doc, InstanceKey, Row, RowFilter, RowOp, RowState, StateStore, StoreFuture, TrayKey,
};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Counts the operations of `inner`, each of which is one round trip, and the text that they write.
pub struct CountingStore<S> {
    inner: S,
    /// How long each operation takes at least.
    round_trip: Duration,
    counts: Arc<Counts>,
}

/// What a [`CountingStore`] has seen.
#[derive(Default)]
pub struct Counts {
    operations: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    ended: Notify,
}

impl Counts {
    /// The end of the next operation, from this call on.
    pub fn next_end(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// Operations that wrote.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Rows that they set or deleted.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The text of the docs that they set.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn add<'a>(&self, docs: impl Iterator<Item = Option<&'a Doc>>) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        for doc in docs {
            self.rows.fetch_add(1, Ordering::Relaxed);
            let bytes = doc.map_or(0, |doc| doc.as_str().len() as u64);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl<S> CountingStore<S> {
    /// Counts what is asked of `inner`, each operation of which takes `round_trip` at least.
    pub fn new(inner: S, round_trip: Duration) -> Self {
        Self {
            inner,
            round_trip,
            counts: Arc::default(),
        }
    }

    /// What it has seen, from now on too.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    fn counted<T: Send + 'static>(&self, outcome: StoreFuture<T>) -> StoreFuture<T> {
        let (round_trip, counts) = (self.round_trip, Arc::clone(&self.counts));
        async move {
            if !round_trip.is_zero() {
                tokio::time::sleep(round_trip).await;
            }
            let outcome = outcome.await;
            counts.ended.notify_waiters();
            outcome
        }
        .boxed()
    }
}

impl<S: StateStore> StateStore for CountingStore<S> {
    fn setup(&self) -> StoreFuture<()> {
        self.inner.setup()
    }

    fn hold_alone(&self) -> StoreFuture<()> {
        self.inner.hold_alone()
    }

    fn batches(&self) -> bool {
        self.inner.batches()
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        self.counts.add([Some(&doc)].into_iter());
        self.counted(self.inner.set_tray(claim, key, marked, doc))
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        self.counts.add([None].into_iter());
        self.counted(self.inner.delete_tray(claim, key))
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        self.counted(self.inner.get_tray(claim, key))
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.counted(self.inner.list(claim, filter))
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        let docs = ops
            .iter()
            .map(|op| op.state.as_ref().map(|state| &state.doc));
        self.counts.add(docs);
        self.counted(self.inner.apply_batch(claim, ops))
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        self.counted(self.inner.marked_instances(after, limit))
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}
