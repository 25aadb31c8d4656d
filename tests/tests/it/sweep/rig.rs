//! The store of one generation: simulated, watched, and sabotaged where a test says so.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::future::ready;
use pinned::durability::{
    Claim, Doc, InstanceKey, Row, RowFilter, RowOp, RowState, StateStore, StoreFuture, TrayKey,
};
use pinned_testing::sim::SimStore;

use super::mutant::{Access, Mutant};
use super::watch::Watch;

#[derive(Clone)]
pub(super) struct Rig {
    store: SimStore,
    watch: Arc<Watch>,
    mutant: Option<Mutant>,
}

impl Rig {
    pub(super) fn new(store: SimStore, watch: Arc<Watch>, mutant: Option<Mutant>) -> Self {
        Self {
            store,
            watch,
            mutant,
        }
    }

    /// Runs an operation, and looks at the disk once it has ended.
    fn watched<T: Send + 'static>(&self, op: StoreFuture<T>) -> StoreFuture<T> {
        let watch = Arc::clone(&self.watch);
        let watched = async move {
            let outcome = op.await;
            watch.after_op();
            outcome
        };
        watched.boxed()
    }

    fn written(&self, op: StoreFuture<()>) -> StoreFuture<()> {
        if self.mutant == Some(Mutant::AnswersEarly) {
            // It is on its way, and goes on without anybody who waits for it.
            drop(op);
            return ready(Ok(())).boxed();
        }
        self.watched(op)
    }

    fn claim(&self, claim: Claim, access: Access) -> Claim {
        let Some(mutant) = self.mutant else {
            return claim;
        };
        let stored = self.watch.disk.memory().epoch(&claim.instance);
        let fence = self.watch.fence.load(Ordering::Acquire);
        let fenced = mutant.fences(access, &claim, fence);
        if !fenced {
            self.watch.fence.store(claim.epoch, Ordering::Release);
        }
        match fenced {
            true => claim,
            false => Claim::new(claim.instance, claim.epoch.max(stored)),
        }
    }

    /// What the store makes of a write; `None` when it makes nothing of it.
    fn altered(&self, instance: &InstanceKey, op: RowOp) -> Option<RowOp> {
        let Some(mutant) = self.mutant else {
            return Some(op);
        };
        let rows = self.watch.disk.memory().rows(instance);
        let old = rows.into_iter().find(|row| row.key == op.key);
        mutant.alter(old.map(|row| row.state), op)
    }

    fn shown(&self, state: RowState) -> RowState {
        match self.mutant {
            Some(mutant) => mutant.show(state),
            None => state,
        }
    }

    fn write(&self, claim: Claim, op: RowOp) -> StoreFuture<()> {
        let claim = self.claim(claim, Access::Write);
        let key = op.key.clone();
        let op = match self.altered(&claim.instance, op) {
            // It acquires, as every operation does, and says that all is well.
            None => {
                let read = self.store.get_tray(claim, key);
                async move { read.await.map(drop) }.boxed()
            }
            Some(RowOp { key, state: None }) => self.store.delete_tray(claim, key),
            Some(RowOp {
                key,
                state: Some(RowState { marked, doc }),
            }) => self.store.set_tray(claim, key, marked, doc),
        };
        self.written(op)
    }
}

impl StateStore for Rig {
    fn setup(&self) -> StoreFuture<()> {
        self.store.setup()
    }

    fn hold_alone(&self) -> StoreFuture<()> {
        self.store.hold_alone()
    }

    fn batches(&self) -> bool {
        self.store.batches()
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        self.write(claim, RowOp::set(key, marked, doc))
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        self.write(claim, RowOp::delete(key))
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        let rig = self.clone();
        let read = self.store.get_tray(self.claim(claim, Access::Read), key);
        let shown = async move { Ok(read.await?.map(|state| rig.shown(state))) };
        self.watched(shown.boxed())
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        let rig = self.clone();
        let read = self.store.list(self.claim(claim, Access::List), filter);
        let shown = async move {
            let rows = read.await?.into_iter().map(|row| Row {
                state: rig.shown(row.state),
                ..row
            });
            Ok(rows.collect())
        };
        self.watched(shown.boxed())
    }

    fn apply_batch(&self, claim: Claim, mut ops: Vec<RowOp>) -> StoreFuture<()> {
        // So the order within a batch is of no account, and neither is a store that does not keep it.
        let mut keys: Vec<&TrayKey> = ops.iter().map(|op| &op.key).collect();
        keys.sort();
        assert!(
            keys.windows(2).all(|pair| pair[0] != pair[1]),
            "a batch names a row once: {keys:?}"
        );
        let claim = self.claim(claim, Access::Write);
        if self.mutant == Some(Mutant::BatchLosesLast) {
            ops.pop();
        }
        let ops = ops.into_iter();
        let ops = ops.filter_map(|op| self.altered(&claim.instance, op));
        let ops = ops.collect();
        self.written(self.store.apply_batch(claim, ops))
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        self.store.marked_instances(after, limit)
    }

    fn describe(&self) -> String {
        self.store.describe()
    }
}
