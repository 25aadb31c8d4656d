//! A store in memory that notes what is asked of it, waits where it is told to, and fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use pinned::durability::{
    Claim, Doc, InstanceKey, MemoryStore, Row, RowFilter, RowOp, RowState, StateStore, StoreError,
    StoreFuture, TrayKey,
};
use pinned_testing::Gate;

#[derive(Clone)]
pub(crate) struct Shelf {
    pub(crate) rows: MemoryStore,
    state: Arc<State>,
}

struct State {
    batches: bool,
    /// Whether the worker finds marked rows by itself.
    searched: AtomicBool,
    log: Mutex<Vec<String>>,
    held: Mutex<Vec<(String, Gate)>>,
    failing: Mutex<Option<String>>,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        Self::with(true)
    }

    pub(crate) fn without_batches() -> Self {
        Self::with(false)
    }

    fn with(batches: bool) -> Self {
        Self {
            rows: MemoryStore::new(),
            state: Arc::new(State {
                batches,
                searched: AtomicBool::new(false),
                log: Mutex::default(),
                held: Mutex::default(),
                failing: Mutex::default(),
            }),
        }
    }

    /// Lets the worker find instances with work by itself, as it does without a control plane.
    pub(crate) fn searched(self) -> Self {
        self.state.searched.store(true, Ordering::Relaxed);
        self
    }

    /// What was asked so far: `list marked`, `get rooms/a`, `set work/~ marked {..}`, `delete rooms/a`.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state.log.lock().clone()
    }

    pub(crate) fn forget(&self) {
        self.state.log.lock().clear();
    }

    /// Operations that begin with `what` wait before they happen.
    pub(crate) fn hold(&self, what: &str) -> Gate {
        let gate = Gate::new();
        let mut held = self.state.held.lock();
        held.push((what.to_owned(), gate.clone()));
        gate
    }

    /// Operations that begin with `what` fail, and do not happen.
    pub(crate) fn fail(&self, what: &str) {
        *self.state.failing.lock() = Some(what.to_owned());
    }

    pub(crate) fn mend(&self) {
        *self.state.failing.lock() = None;
    }

    fn run<T: Send + 'static>(
        &self,
        what: Vec<String>,
        op: impl FnOnce(&MemoryStore) -> StoreFuture<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let shelf = self.clone();
        async move {
            let matches = |start: &str| what.iter().any(|op| op.starts_with(start));
            let gate = {
                let held = shelf.state.held.lock();
                held.iter()
                    .find(|(start, _)| matches(start))
                    .map(|(_, gate)| gate.clone())
            };
            if let Some(gate) = gate {
                gate.pass().await;
            }
            let fails = shelf.state.failing.lock().as_deref().is_some_and(matches);
            shelf.state.log.lock().extend(what);
            if fails {
                return Err(StoreError::failed("told to fail"));
            }
            op(&shelf.rows).await
        }
        .boxed()
    }
}

fn place(key: &TrayKey) -> String {
    format!("{}/{}", key.tray_ns, key.tray_id)
}

fn write(op: &RowOp) -> String {
    match &op.state {
        None => format!("delete {}", place(&op.key)),
        Some(RowState { marked, doc }) => {
            let mark = if *marked { "marked" } else { "unmarked" };
            format!("set {} {mark} {}", place(&op.key), doc.as_str())
        }
    }
}

impl StateStore for Shelf {
    fn setup(&self) -> StoreFuture<()> {
        self.rows.setup()
    }

    fn hold_alone(&self) -> StoreFuture<()> {
        self.rows.hold_alone()
    }

    fn batches(&self) -> bool {
        self.state.batches
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        let what = write(&RowOp::set(key.clone(), marked, doc.clone()));
        self.run(vec![what], move |rows| {
            rows.set_tray(claim, key, marked, doc)
        })
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        let what = write(&RowOp::delete(key.clone()));
        self.run(vec![what], move |rows| rows.delete_tray(claim, key))
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        let what = format!("get {}", place(&key));
        self.run(vec![what], move |rows| rows.get_tray(claim, key))
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        let what = match (&filter.tray_ns, filter.marked) {
            (None, Some(true)) => "list marked".to_owned(),
            (Some(name), None) => format!("list {name}"),
            _ => format!("list {filter:?}"),
        };
        self.run(vec![what], move |rows| rows.list(claim, filter))
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        if !self.state.batches {
            return ready(Err(StoreError::Unsupported)).boxed();
        }
        let what = ops.iter().map(write).collect();
        self.run(what, move |rows| rows.apply_batch(claim, ops))
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<InstanceKey>, StoreError>> {
        match self.state.searched.load(Ordering::Relaxed) {
            true => self.rows.marked_instances(after, limit),
            false => ready(Ok(Vec::new())).boxed(),
        }
    }

    fn describe(&self) -> String {
        self.rows.describe()
    }
}
