//! A store that shows what reaches it, holds it up, and fails.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::instance;
use crate::durability::{
    Claim, Doc, InstanceKey, MemoryStore, Row, RowFilter, RowOp, RowState, StateStore, StoreError,
    StoreFuture, TrayKey,
};

/// What becomes of a write besides being applied.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    /// It fails, and nothing changes.
    Rejected,
    /// It lands, and its answer is lost.
    AnswerLost,
    Panic,
}

/// Keeps rows in memory; clones are the same store.
#[derive(Clone)]
pub(super) struct RecordingStore {
    shared: Arc<Shared>,
}

struct Shared {
    below: MemoryStore,
    batches: bool,
    calls: Mutex<Vec<(u64, String)>>,
    faults: Mutex<VecDeque<Fault>>,
    /// How many writes may land; without a number all may.
    passes: watch::Sender<Option<u32>>,
    parked: watch::Sender<usize>,
}

struct Parked<'a>(&'a watch::Sender<usize>);

impl RecordingStore {
    pub(super) fn with_batches() -> Self {
        Self::new(true)
    }

    pub(super) fn with_single_writes() -> Self {
        Self::new(false)
    }

    fn new(batches: bool) -> Self {
        Self {
            shared: Arc::new(Shared {
                below: MemoryStore::new(),
                batches,
                calls: Mutex::default(),
                faults: Mutex::default(),
                passes: watch::Sender::new(None),
                parked: watch::Sender::new(0),
            }),
        }
    }

    /// The writes so far: `row=n`, `row*=n` for a marked one, `-row` for a delete, `[...]` for a batch.
    pub(super) fn calls(&self) -> Vec<String> {
        let calls = self.shared.calls.lock();
        calls.iter().map(|(_, call)| call.clone()).collect()
    }

    /// The epochs that they came at.
    pub(super) fn epochs(&self) -> Vec<u64> {
        let calls = self.shared.calls.lock();
        calls.iter().map(|(epoch, _)| *epoch).collect()
    }

    /// The rows on disk, written as calls are.
    pub(super) fn disk(&self) -> Vec<String> {
        let rows = self.shared.below.rows(&instance());
        rows.into_iter()
            .map(|row| show(&row.key, Some(&row.state)))
            .collect()
    }

    /// Parks every write from now on, before it lands.
    pub(super) fn hold(&self) {
        self.shared.passes.send_replace(Some(0));
    }

    /// Lets one write land, and parks the others still.
    pub(super) fn release_one(&self) {
        self.shared.passes.send_replace(Some(1));
    }

    pub(super) fn release(&self) {
        self.shared.passes.send_replace(None);
    }

    pub(super) async fn parked(&self) {
        let mut parked = self.shared.parked.subscribe();
        parked.wait_for(|parked| *parked > 0).await.expect("kept");
    }

    /// How many writes are parked.
    pub(super) fn parked_now(&self) -> usize {
        *self.shared.parked.borrow()
    }

    /// One of the next writes, each in its turn, fails.
    pub(super) fn fail_next(&self, fault: Fault) {
        self.shared.faults.lock().push_back(fault);
    }

    fn write(&self, call: String, claim: &Claim, op: StoreFuture<()>) -> StoreFuture<()> {
        let shared = Arc::clone(&self.shared);
        shared.calls.lock().push((claim.epoch, call));
        async move {
            shared.pass().await;
            let fault = shared.faults.lock().pop_front();
            match fault {
                None => op.await,
                Some(Fault::Rejected) => Err(StoreError::failed("out of order")),
                Some(Fault::AnswerLost) => {
                    op.await?;
                    Err(StoreError::failed("no answer"))
                }
                Some(Fault::Panic) => panic!("a bug of the store"),
            }
        }
        .boxed()
    }
}

impl Shared {
    async fn pass(&self) {
        let mut passes = self.passes.subscribe();
        while !self.may_pass() {
            let _parked = Parked::new(&self.parked);
            passes.changed().await.expect("kept");
        }
    }

    fn may_pass(&self) -> bool {
        let mut may = false;
        self.passes.send_if_modified(|passes| match passes {
            None => {
                may = true;
                false
            }
            Some(0) => false,
            Some(left) => {
                may = true;
                *left -= 1;
                true
            }
        });
        may
    }
}

/// [`MemoryStore`] applies where it is called; a write that is held up must not have landed.
fn later(
    store: &MemoryStore,
    op: impl FnOnce(MemoryStore) -> StoreFuture<()> + Send + 'static,
) -> StoreFuture<()> {
    let store = store.clone();
    async move { op(store).await }.boxed()
}

fn show(key: &TrayKey, state: Option<&RowState>) -> String {
    match state {
        None => format!("-{}", key.tray_ns),
        Some(RowState { marked, doc }) => {
            let mark = if *marked { "*" } else { "" };
            let map = doc.to_map();
            format!("{}{mark}={}", key.tray_ns, map["n"])
        }
    }
}

impl StateStore for RecordingStore {
    fn setup(&self) -> StoreFuture<()> {
        self.shared.below.setup()
    }

    fn hold_alone(&self) -> StoreFuture<()> {
        self.shared.below.hold_alone()
    }

    fn batches(&self) -> bool {
        self.shared.batches
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        let state = RowState { marked, doc };
        let call = show(&key, Some(&state));
        let op = {
            let claim = claim.clone();
            later(&self.shared.below, move |store| {
                store.set_tray(claim, key, state.marked, state.doc)
            })
        };
        self.write(call, &claim, op)
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        let call = show(&key, None);
        let op = {
            let claim = claim.clone();
            later(&self.shared.below, move |store| {
                store.delete_tray(claim, key)
            })
        };
        self.write(call, &claim, op)
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        self.shared.below.get_tray(claim, key)
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.shared.below.list(claim, filter)
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        assert!(self.shared.batches, "the store said that it has no batches");
        let shown: Vec<_> = ops
            .iter()
            .map(|op| show(&op.key, op.state.as_ref()))
            .collect();
        let op = {
            let claim = claim.clone();
            later(&self.shared.below, move |store| {
                store.apply_batch(claim, ops)
            })
        };
        self.write(format!("[{}]", shown.join(", ")), &claim, op)
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        self.shared.below.marked_instances(after, limit)
    }

    fn describe(&self) -> String {
        self.shared.below.describe()
    }
}

impl<'a> Parked<'a> {
    fn new(parked: &'a watch::Sender<usize>) -> Self {
        parked.send_modify(|parked| *parked += 1);
        Self(parked)
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|parked| *parked -= 1);
    }
}
