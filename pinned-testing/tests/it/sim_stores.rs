//! Stores that fail by the dice.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use pinned::domain::Domain;
use pinned::durability::{
    Claim, Doc, InstanceKey, Row, RowFilter, RowOp, RowState, StateStore, StoreError, StoreFuture,
    TrayKey,
};
use pinned_testing::conformance;
use pinned_testing::sim::{
    BadSchedule, OpName, Sim, SimDisk, SimOutcome, SimSchedule, SimStore, StoreFailed,
};

const MS: Duration = Duration::from_millis(1);

fn blue() -> InstanceKey {
    InstanceKey::new("/rooms", "blue")
}

fn at(epoch: u64) -> Claim {
    Claim::new(blue(), epoch)
}

fn set(store: &SimStore, epoch: u64, row: &str) -> StoreFuture<()> {
    store.set_tray(at(epoch), TrayKey::new(row, "~"), true, Doc::empty())
}

fn store(sim: &Sim, disk: &SimDisk, schedule: SimSchedule) -> SimStore {
    SimStore::new(&sim.domain(), disk, schedule).expect("a schedule that can be kept")
}

fn always(outcome: SimOutcome) -> SimSchedule {
    SimSchedule::new().script(move |_| Some(outcome))
}

fn rows(disk: &SimDisk) -> usize {
    disk.memory().rows(&blue()).len()
}

#[test]
fn each_outcome_changes_what_it_says_and_reports_what_it_says() {
    // S2.2, S2.3, S2.7
    for (outcome, lands, fails) in [
        (SimOutcome::Applied, true, false),
        (SimOutcome::Rejected, false, true),
        (SimOutcome::AmbiguousCommitted, true, true),
        (SimOutcome::AmbiguousLost, false, true),
    ] {
        Sim::run(1, move |sim| async move {
            let disk = SimDisk::new();
            let store = store(&sim, &disk, always(outcome));
            let answer = set(&store, 3, "a").await;
            assert_eq!(answer.as_ref().is_err_and(StoreFailed::is_why), fails);
            assert_eq!(rows(&disk) == 1, lands, "{outcome:?}");
            assert_eq!(disk.memory().epoch(&blue()) == 3, lands, "{outcome:?}");
        });
    }
}

#[test]
fn a_fence_outranks_clean_verdicts_and_is_lost_in_unclear_ones() {
    // S2.6
    for (outcome, fenced) in [
        (SimOutcome::Applied, true),
        (SimOutcome::Rejected, true),
        (SimOutcome::AmbiguousCommitted, false),
        (SimOutcome::AmbiguousLost, false),
    ] {
        Sim::run(1, move |sim| async move {
            let disk = SimDisk::new();
            let memory = disk.memory();
            let acquired = memory.list(at(5), RowFilter::all()).await;
            acquired.expect("acquired");
            let error = set(&store(&sim, &disk, always(outcome)), 4, "a").await;
            let error = error.expect_err("fenced off");
            assert_eq!(error.is_fence_lost(), fenced, "{outcome:?}");
            assert_eq!(StoreFailed::is_why(&error), !fenced, "{outcome:?}");
            assert_eq!(rows(&disk), 0);
        });
    }
}

/// What becomes of `ops` operations by the dice of `seed`.
fn outcomes(seed: u64, ops: u64) -> Vec<SimOutcome> {
    Sim::run(seed, move |sim| async move {
        let schedule = SimSchedule::new().faults(0.25, 0.25).latency(MS..=MS * 10);
        let store = store(&sim, &SimDisk::new(), schedule);
        for _ in 0..ops {
            let _ = set(&store, 1, "a").await;
        }
        let log = store.log();
        log.into_iter().map(|logged| logged.outcome).collect()
    })
}

#[test]
fn one_seed_is_one_sequence_and_every_outcome_occurs() {
    // S2.4, S2.12
    let drawn = outcomes(1, 300);
    assert_eq!(drawn, outcomes(1, 300));
    assert_ne!(drawn, outcomes(2, 300));
    assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), 4);
}

#[test]
fn a_pinned_outcome_skips_the_draw() {
    // S2.5
    let mut drawn: Vec<_> = Sim::run(1, |sim| async move {
        let script = SimSchedule::new().faults(0.25, 0.25).script(|op| {
            let pinned = op.index == 3 && op.name == OpName::SetTray && op.epoch == 1;
            (pinned && op.instance == blue()).then_some(SimOutcome::Applied)
        });
        let store = store(&sim, &SimDisk::new(), script);
        for _ in 0..10 {
            let _ = set(&store, 1, "a").await;
        }
        let log = store.log();
        log.iter().map(|logged| logged.outcome).collect()
    });
    assert_eq!(drawn.remove(2), SimOutcome::Applied);
    assert_eq!(drawn, outcomes(1, 9));
}

#[test]
fn a_batch_is_one_operation_and_lands_whole_or_not_at_all() {
    // S2.8
    let batch = || ["a", "b"].map(|row| RowOp::set(TrayKey::new(row, "~"), true, Doc::empty()));
    for (outcome, landed) in [
        (SimOutcome::Applied, 2),
        (SimOutcome::AmbiguousCommitted, 2),
        (SimOutcome::Rejected, 0),
    ] {
        Sim::run(1, move |sim| async move {
            let disk = SimDisk::new();
            let store = store(&sim, &disk, always(outcome));
            let _ = store.apply_batch(at(1), batch().into()).await;
            assert_eq!((rows(&disk), disk.ops()), (landed, 1));
        });
    }
}

#[test]
fn single_writes_hide_batches() {
    // S2.11
    Sim::run(1, |sim| async move {
        let disk = SimDisk::new();
        let store = store(&sim, &disk, SimSchedule::new().single_writes());
        assert!(!store.batches());
        let error = store.apply_batch(at(1), Vec::new()).await;
        assert!(matches!(error, Err(StoreError::Unsupported)));
        assert_eq!(disk.ops(), 0);
    });
}

#[test]
fn indexes_go_on_over_lives_and_a_log_is_one_lifes() {
    // S2.9
    Sim::run(1, |sim| async move {
        let disk = SimDisk::new();
        for life in 0..3 {
            let store = store(&sim, &disk, SimSchedule::new());
            for _ in 0..2 {
                set(&store, 1, "a").await.expect("applied");
            }
            let indexes: Vec<_> = store.log().iter().map(|logged| logged.op.index).collect();
            assert_eq!(indexes, [life * 2 + 1, life * 2 + 2]);
        }
        assert_eq!(disk.ops(), 6);
    });
}

#[test]
fn an_operation_takes_its_time_before_it_lands() {
    // S2.1, S2.4
    Sim::run(1, |sim| async move {
        let disk = SimDisk::new();
        let store = store(&sim, &disk, SimSchedule::new().latency(MS * 3..=MS * 3));
        let write = set(&store, 1, "a");
        sim.advance(MS * 2).await;
        assert_eq!((rows(&disk), store.log().len()), (0, 1));
        sim.advance(MS).await;
        assert_eq!(rows(&disk), 1, "whether or not somebody waits for it");
        write.await.expect("applied");
    });
}

#[test]
fn before_a_crash_point_the_process_is_dead_and_nothing_returns() {
    // S3.2
    Sim::run(1, |sim| async move {
        let disk = SimDisk::new();
        let schedule = SimSchedule::new().before_op(|op| match op.index {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        let store = store(&sim, &disk, schedule);
        set(&store, 1, "a").await.expect("applied");
        let (killed, later) = (set(&store, 1, "b"), set(&store, 1, "c"));
        sim.advance(MS).await;
        assert!(killed.now_or_never().is_none() && later.now_or_never().is_none());
        assert_eq!((rows(&disk), disk.ops()), (1, 2));
    });
}

#[test]
fn bad_schedules_are_refused() {
    // S2.10
    Sim::run(1, |sim| async move {
        let open = |schedule| SimStore::new(&sim.domain(), &SimDisk::new(), schedule).err();
        for (reject, ambiguous) in [
            (-0.1, 0.0),
            (1.1, 0.0),
            (0.0, 2.0),
            (0.6, 0.6),
            (f64::NAN, 0.0),
        ] {
            let error = open(SimSchedule::new().faults(reject, ambiguous));
            assert!(
                matches!(error, Some(BadSchedule::Probability { .. })),
                "{error:?}"
            );
        }
        let error = open(SimSchedule::new().latency(MS * 2..=MS));
        assert!(matches!(error, Some(BadSchedule::Latency { .. })));
        assert!(open(SimSchedule::new().faults(0.5, 0.5).latency(MS..=MS)).is_none());
    });
}

#[test]
fn the_simulated_store_keeps_the_contract() {
    // S10
    for single in [false, true] {
        Sim::run(1, move |sim| async move {
            let schedule = SimSchedule::new().latency(Duration::ZERO..=MS * 10);
            let schedule = if single {
                schedule.single_writes()
            } else {
                schedule
            };
            let store = store(&sim, &SimDisk::new(), schedule);
            conformance::state_store(|| async { Arc::new(store.clone()) as Arc<dyn StateStore> })
                .await;
        });
    }
}

#[test]
fn the_simulated_store_keeps_the_contract_through_faults_that_are_tried_again() {
    // S10
    for seed in 0..4 {
        Sim::run(seed, |sim| async move {
            let schedule = SimSchedule::new()
                .faults(0.25, 0.25)
                .latency(Duration::ZERO..=MS * 10);
            let persistent = Arc::new(Retrying {
                store: store(&sim, &SimDisk::new(), schedule),
                domain: sim.domain(),
                last: Mutex::default(),
            });
            conformance::state_store(|| async { Arc::clone(&persistent) as Arc<dyn StateStore> })
                .await;
        });
    }
}

/// A caller that tries again what has failed, one operation after the other.
struct Retrying {
    store: SimStore,
    domain: Domain,
    last: Mutex<Option<tokio::sync::oneshot::Receiver<()>>>,
}

impl Retrying {
    fn retry<T: Send + 'static>(
        &self,
        op: impl Fn(&SimStore) -> StoreFuture<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let (ends, ended) = tokio::sync::oneshot::channel::<()>();
        let earlier = self.last.lock().replace(ended);
        let store = self.store.clone();
        let task = self.domain.spawn(async move {
            let _ends = ends;
            if let Some(earlier) = earlier {
                let _ = earlier.await;
            }
            loop {
                match op(&store).await {
                    Err(error) if StoreFailed::is_why(&error) => {}
                    outcome => return outcome,
                }
            }
        });
        Box::pin(async move { task.await.expect("it runs to its end") })
    }
}

impl StateStore for Retrying {
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
        self.retry(move |store| store.set_tray(claim.clone(), key.clone(), marked, doc.clone()))
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        self.retry(move |store| store.delete_tray(claim.clone(), key.clone()))
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        self.retry(move |store| store.get_tray(claim.clone(), key.clone()))
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        self.retry(move |store| store.list(claim.clone(), filter.clone()))
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        self.retry(move |store| store.apply_batch(claim.clone(), ops.clone()))
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
