//! A store that fails by the dice.

mod disk;
mod op;
mod schedule;
mod turns;

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pinned::domain::{Domain, Rng};
use pinned::durability::{
    Claim, Doc, FenceLost, InstanceKey, MemoryStore, Row, RowFilter, RowOp, RowState, StateStore,
    StoreError, StoreFuture, TrayKey,
};

pub use disk::SimDisk;
pub use op::{LoggedOp, OpName, SimOp, SimOutcome, StoreFailed};
pub use schedule::{BadSchedule, SimSchedule};
use turns::Turns;

/// A store on a [`SimDisk`], whose operations take their time and fail as a [`SimSchedule`] and the seed say (S2). A
/// cheap handle; clones are the same store.
///
/// One store is one life of a process: its log of operations, and what it has under way, end with the process. The disk
/// stays.
///
/// ```
/// use pinned::durability::{Claim, Doc, InstanceKey, StateStore, TrayKey};
/// use pinned_testing::sim::{Sim, SimDisk, SimOutcome, SimSchedule, SimStore, StoreFailed};
///
/// Sim::run(7, |sim| async move {
///     let disk = SimDisk::new();
///     let lossy = SimSchedule::new().script(|op| (op.index == 1).then_some(SimOutcome::AmbiguousCommitted));
///     let store = SimStore::new(&sim.domain(), &disk, lossy).expect("a schedule that can be kept");
///
///     let blue = InstanceKey::new("/rooms", "blue");
///     let claim = Claim::new(blue.clone(), 1);
///     let answer = store.set_tray(claim, TrayKey::new("work", "~"), true, Doc::empty()).await;
///     assert!(StoreFailed::is_why(&answer.unwrap_err()));
///     assert_eq!(disk.memory().rows(&blue).len(), 1, "it has happened all the same");
/// });
/// ```
#[derive(Clone)]
pub struct SimStore {
    shared: Arc<Shared>,
}

struct Shared {
    disk: SimDisk,
    domain: Domain,
    schedule: SimSchedule,
    outcomes: Rng,
    latencies: Rng,
    turns: Turns,
    log: Mutex<Vec<LoggedOp>>,
    /// The process has died before one of its operations.
    dead: AtomicBool,
}

/// An operation that is decided on and not performed yet.
struct Decided {
    claim: Claim,
    outcome: SimOutcome,
    latency: Duration,
}

impl SimStore {
    /// A store of `domain`'s process on `disk`.
    ///
    /// # Errors
    ///
    /// [`BadSchedule`].
    ///
    /// # Panics
    ///
    /// Never: the labels of its streams are not empty.
    pub fn new(
        domain: &Domain,
        disk: &SimDisk,
        schedule: SimSchedule,
    ) -> Result<Self, BadSchedule> {
        schedule.check()?;
        let stream = |label| domain.rng(label).expect("a label that is not empty");
        Ok(Self {
            shared: Arc::new(Shared {
                disk: disk.clone(),
                domain: domain.clone(),
                schedule,
                outcomes: stream("store/outcomes"),
                latencies: stream("store/latencies"),
                turns: Turns::default(),
                log: Mutex::default(),
                dead: AtomicBool::new(false),
            }),
        })
    }

    /// The disk.
    #[must_use]
    pub fn disk(&self) -> &SimDisk {
        &self.shared.disk
    }

    /// The operations so far, in order, with what became of them.
    #[must_use]
    pub fn log(&self) -> Vec<LoggedOp> {
        self.shared.log.lock().clone()
    }

    fn is_dead(&self) -> bool {
        self.shared.dead.load(Ordering::Acquire)
    }

    /// Counts, decides and logs an operation, in the order of the calls; performs it in its turn, whether or not its
    /// caller waits for that.
    fn op<T: Send + 'static>(
        &self,
        name: OpName,
        claim: Claim,
        perform: impl FnOnce(&MemoryStore, Claim) -> StoreFuture<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let Some(decided) = self.decide(name, claim) else {
            return Box::pin(pending());
        };
        let shared = Arc::clone(&self.shared);
        let mut turn = shared.turns.take(&decided.claim.instance);
        let task = self.shared.domain.spawn(async move {
            turn.come().await;
            shared.domain.sleep(decided.latency).await;
            decided.settle(shared.disk.memory(), perform).await
        });
        Box::pin(async move { task.await.unwrap_or_else(|_| Err(StoreFailed.into())) })
    }

    /// `None` when the process is dead.
    fn decide(&self, name: OpName, claim: Claim) -> Option<Decided> {
        let shared = &self.shared;
        if self.is_dead() {
            return None;
        }
        let op = SimOp {
            index: shared.disk.next_index(),
            name,
            instance: claim.instance.clone(),
            epoch: claim.epoch,
        };
        if !shared.schedule.survives(&op) {
            shared.dead.store(true, Ordering::Release);
            return None;
        }
        let outcome = shared.schedule.outcome(&op, &shared.outcomes);
        let latency = shared.schedule.draw_latency(&shared.latencies);
        shared.log.lock().push(LoggedOp { op, outcome });
        Some(Decided {
            claim,
            outcome,
            latency,
        })
    }
}

impl Decided {
    async fn settle<T>(
        self,
        memory: &MemoryStore,
        perform: impl FnOnce(&MemoryStore, Claim) -> StoreFuture<T>,
    ) -> Result<T, StoreError> {
        match self.outcome {
            SimOutcome::Applied => perform(memory, self.claim).await,
            SimOutcome::AmbiguousCommitted => {
                // A fence is lost with the answer too (S2.6).
                let _ = perform(memory, self.claim).await;
                Err(StoreFailed.into())
            }
            SimOutcome::Rejected if self.claim.epoch < memory.epoch(&self.claim.instance) => {
                Err(FenceLost::from(&self.claim).into())
            }
            SimOutcome::Rejected | SimOutcome::AmbiguousLost => Err(StoreFailed.into()),
        }
    }
}

impl StateStore for SimStore {
    fn setup(&self) -> StoreFuture<()> {
        self.shared.disk.memory().setup()
    }

    fn hold_alone(&self) -> StoreFuture<()> {
        self.shared.disk.memory().hold_alone()
    }

    fn batches(&self) -> bool {
        self.shared.schedule.batches
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        self.op(OpName::SetTray, claim, move |memory, claim| {
            memory.set_tray(claim, key, marked, doc)
        })
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        self.op(OpName::DeleteTray, claim, move |memory, claim| {
            memory.delete_tray(claim, key)
        })
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        self.op(OpName::GetTray, claim, move |memory, claim| {
            memory.get_tray(claim, key)
        })
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.op(OpName::List, claim, move |memory, claim| {
            memory.list(claim, filter)
        })
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        if !self.batches() {
            return Box::pin(async { Err(StoreError::Unsupported) });
        }
        self.op(OpName::ApplyBatch, claim, move |memory, claim| {
            memory.apply_batch(claim, ops)
        })
    }

    /// Acquires nothing, and is no operation of an instance: it is not counted, and does not fail.
    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        self.shared.disk.memory().marked_instances(after, limit)
    }

    fn describe(&self) -> String {
        "memory, with simulated faults".to_owned()
    }
}

impl fmt::Debug for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimStore")
            .field("schedule", &self.shared.schedule)
            .field("ops", &self.log().len())
            .finish_non_exhaustive()
    }
}
