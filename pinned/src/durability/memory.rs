//! The store in memory (D7).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::ready;
use parking_lot::Mutex;

use super::claim::{Claim, InstanceKey, TrayKey};
use super::row::{Doc, Row, RowFilter, RowOp, RowState};
use super::store::{FenceLost, StateStore, StoreError, StoreFuture};

/// Rows in memory: durable for as long as the process lives. A cheap handle; clones are the same store.
///
/// For tests, and for programs whose state need not outlive them (`PINNED_STORE=memory:`).
///
/// ```
/// use pinned::durability::{Claim, Doc, InstanceKey, MemoryStore, RowFilter, StateStore, TrayKey};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), pinned::durability::StoreError> {
/// let store = MemoryStore::new();
/// let room = InstanceKey::new("/rooms", "blue");
/// store.set_tray(Claim::new(room.clone(), 1), TrayKey::new("work", "~"), true, Doc::empty()).await?;
///
/// // A newer activation reads, and has acquired the instance by that.
/// assert_eq!(store.list(Claim::new(room.clone(), 2), RowFilter::marked()).await?.len(), 1);
/// let late = store.delete_tray(Claim::new(room, 1), TrayKey::new("work", "~")).await;
/// assert!(late.unwrap_err().is_fence_lost());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    epochs: HashMap<InstanceKey, u64>,
    rows: BTreeMap<InstanceKey, BTreeMap<TrayKey, RowState>>,
}

impl State {
    /// D2: the check of every operation, in the same locked step as the operation.
    fn acquire(&mut self, claim: &Claim) -> Result<(), StoreError> {
        let stored = self.epochs.entry(claim.instance.clone()).or_insert(0);
        if claim.epoch < *stored {
            return Err(FenceLost::from(claim).into());
        }
        *stored = claim.epoch;
        Ok(())
    }

    fn apply(&mut self, instance: &InstanceKey, op: RowOp) {
        match op.state {
            Some(state) => {
                let rows = self.rows.entry(instance.clone()).or_default();
                rows.insert(op.key, state);
            }
            None => {
                if let Some(rows) = self.rows.get_mut(instance) {
                    rows.remove(&op.key);
                    if rows.is_empty() {
                        self.rows.remove(instance);
                    }
                }
            }
        }
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The stored epoch of an instance, 0 for one that was never touched (D1.5).
    #[must_use]
    pub fn epoch(&self, instance: &InstanceKey) -> u64 {
        let state = self.state.lock();
        state.epochs.get(instance).copied().unwrap_or(0)
    }

    /// The rows of an instance, in the order of listings. Acquires nothing.
    #[must_use]
    pub fn rows(&self, instance: &InstanceKey) -> Vec<Row> {
        let state = self.state.lock();
        let rows = state.rows.get(instance).into_iter().flatten();
        rows.map(|(key, state)| Row {
            key: key.clone(),
            state: state.clone(),
        })
        .collect()
    }

    fn run<T: Send + 'static>(
        &self,
        claim: &Claim,
        op: impl FnOnce(&mut State) -> T,
    ) -> StoreFuture<T> {
        let mut state = self.state.lock();
        let outcome = state.acquire(claim).map(|()| op(&mut state));
        drop(state);
        ready(outcome).boxed()
    }
}

impl StateStore for MemoryStore {
    fn setup(&self) -> StoreFuture<()> {
        let store = self.clone();
        async move { super::store::prove_fences(&store).await }.boxed()
    }

    /// There is no other process that could reach it.
    fn hold_alone(&self) -> StoreFuture<()> {
        ready(Ok(())).boxed()
    }

    fn batches(&self) -> bool {
        true
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        self.run(&claim, |state| {
            state.apply(&claim.instance, RowOp::set(key, marked, doc));
        })
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        self.run(&claim, |state| {
            state.apply(&claim.instance, RowOp::delete(key));
        })
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        self.run(&claim, |state| {
            state.rows.get(&claim.instance)?.get(&key).cloned()
        })
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.run(&claim, |state| {
            let rows = state.rows.get(&claim.instance).into_iter().flatten();
            rows.filter(|(key, state)| filter.admits(key, state.marked))
                .map(|(key, state)| Row {
                    key: key.clone(),
                    state: state.clone(),
                })
                .collect()
        })
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        self.run(&claim, |state| {
            for op in ops {
                state.apply(&claim.instance, op);
            }
        })
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        let state = self.state.lock();
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let marked = state
            .rows
            .range((after, Bound::Unbounded))
            .filter(|(_, rows)| rows.values().any(|row| row.marked))
            .map(|(instance, _)| instance.clone())
            .take(limit)
            .collect();
        drop(state);
        ready(Ok(marked)).boxed()
    }

    fn describe(&self) -> String {
        "memory (nothing outlives this process)".to_owned()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("MemoryStore")
            .field("instances", &state.rows.len())
            .finish_non_exhaustive()
    }
}
