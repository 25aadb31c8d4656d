//! A store in memory that a test can park, fail, and stop.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::pending;
use parking_lot::Mutex;
use pinned::durability::{
    Claim, Doc, InstanceKey, MemoryStore, Row, RowFilter, RowOp, RowState, StateStore, StoreError,
    StoreFuture, TrayKey,
};

use crate::app::Gate;

/// What is to become of writes.
#[derive(Clone)]
pub(crate) enum Writes {
    Apply,
    /// They wait at the gate, and are applied once it is open.
    Park(Gate),
    /// They fail without being applied.
    Fail,
    /// So many more are applied; the process ends in the next one, and nothing is answered any more.
    StopAfter(usize),
}

/// Rows in memory behind a switch. Clones are the same store.
#[derive(Clone)]
pub(crate) struct Switched {
    pub(crate) disk: MemoryStore,
    batches: bool,
    state: Arc<Mutex<State>>,
}

struct State {
    writes: Writes,
    /// Every write that was asked for: the rows that it names.
    seen: Vec<String>,
    stopped: bool,
    setups_fail: bool,
}

impl Switched {
    pub(crate) fn new() -> Self {
        Self::over(MemoryStore::new(), true)
    }

    /// A fresh process on the rows of another.
    pub(crate) fn over_disk(disk: MemoryStore) -> Self {
        Self::over(disk, true)
    }

    /// Without batches each row write is a step of its own, and a place for a crash.
    pub(crate) fn singles(disk: MemoryStore) -> Self {
        Self::over(disk, false)
    }

    fn over(disk: MemoryStore, batches: bool) -> Self {
        Self {
            disk,
            batches,
            state: Arc::new(Mutex::new(State {
                writes: Writes::Apply,
                seen: Vec::new(),
                stopped: false,
                setups_fail: false,
            })),
        }
    }

    pub(crate) fn set(&self, writes: Writes) {
        self.state.lock().writes = writes;
    }

    /// Parks every write from here on.
    pub(crate) fn park(&self) -> Gate {
        let gate = Gate::closed();
        self.set(Writes::Park(gate.clone()));
        gate
    }

    pub(crate) fn fail_setups(&self, fail: bool) {
        self.state.lock().setups_fail = fail;
    }

    /// The rows of each write since the last call.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().seen)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    fn write(&self, rows: String, write: StoreFuture<()>) -> StoreFuture<()> {
        let writes = {
            let mut state = self.state.lock();
            state.seen.push(rows);
            match &mut state.writes {
                Writes::StopAfter(0) => state.stopped = true,
                Writes::StopAfter(left) => *left -= 1,
                _ => {}
            }
            match state.stopped {
                true => return pending().boxed(),
                false => state.writes.clone(),
            }
        };
        match writes {
            Writes::Apply | Writes::StopAfter(_) => write,
            Writes::Fail => async { Err(StoreError::failed("the test fails the store")) }.boxed(),
            Writes::Park(gate) => async move {
                gate.pass().await;
                write.await
            }
            .boxed(),
        }
    }

    fn read<T: Send + 'static>(&self, read: StoreFuture<T>) -> StoreFuture<T> {
        match self.is_stopped() {
            true => pending().boxed(),
            false => read,
        }
    }
}

fn later<T: Send + 'static>(
    disk: &MemoryStore,
    run: impl FnOnce(MemoryStore) -> StoreFuture<T> + Send + 'static,
) -> StoreFuture<T> {
    // A memory store acts where it is called, and a parked write must not have happened.
    let disk = disk.clone();
    async move { run(disk).await }.boxed()
}

impl StateStore for Switched {
    fn setup(&self) -> StoreFuture<()> {
        match self.state.lock().setups_fail {
            true => async { Err(StoreError::failed("the disk is not there")) }.boxed(),
            false => self.disk.setup(),
        }
    }

    fn hold_alone(&self) -> StoreFuture<()> {
        self.disk.hold_alone()
    }

    fn batches(&self) -> bool {
        self.batches
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        let rows = key.tray_ns.to_string();
        let write = later(&self.disk, move |disk| {
            disk.set_tray(claim, key, marked, doc)
        });
        self.write(rows, write)
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        let rows = format!("-{}", key.tray_ns);
        let write = later(&self.disk, move |disk| disk.delete_tray(claim, key));
        self.write(rows, write)
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        self.read(later(&self.disk, move |disk| disk.get_tray(claim, key)))
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.read(later(&self.disk, move |disk| disk.list(claim, filter)))
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        let rows: Vec<&str> = ops.iter().map(|op| &*op.key.tray_ns).collect();
        let rows = rows.join(" ");
        let write = later(&self.disk, move |disk| disk.apply_batch(claim, ops));
        self.write(rows, write)
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        self.read(self.disk.marked_instances(after, limit))
    }

    fn describe(&self) -> String {
        "switched (a test's)".to_owned()
    }
}
