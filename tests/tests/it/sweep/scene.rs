//! A run under way: a first life of a node, crashes where the plan says so, and recoveries until all is done (S4.8, S4.9).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pinned::WorkerBuilder;
use pinned_testing::sim::{Crashed, Node, NodeError, Sim, SimOutcome, SimSchedule, SimStore};

use super::invariants::Violation;
use super::plan::{Lane, Plan};
use super::probe::Probe;
use super::rig::Rig;
use super::run::Outcome;
use super::watch::Watch;
use super::workload::Desk;

/// S3.4
const LATENCY: Duration = Duration::from_millis(10);
/// What a store rejects, and what it leaves open, in a run with faults.
const FAULTS: f64 = 0.02;

/// A life ends before its program does.
pub(super) enum Cut {
    Crashed,
    /// What the watch has found stands there.
    Broken,
}

impl From<Crashed> for Cut {
    fn from(_: Crashed) -> Self {
        Self::Crashed
    }
}

/// A run under way.
pub(super) struct Scene {
    pub(super) sim: Sim,
    pub(super) node: Node,
    pub(super) watch: Arc<Watch>,
    probe: Arc<Mutex<Probe>>,
    pub(super) rig: Arc<Mutex<Option<Rig>>>,
    crash_points: usize,
    crashes: usize,
    recoveries: u64,
    both_resurrected: bool,
    faults: usize,
    pub(super) faulty: bool,
    pub(super) scratch_due: bool,
    /// The keyed lanes that were at work when this life began.
    marked: BTreeSet<String>,
    /// A request was refused: in a run with faults the instance may have to be placed anew.
    pub(super) refused: AtomicBool,
}

impl Scene {
    pub(super) fn new(sim: &Sim, plan: &Plan) -> Self {
        let watch = Watch::new(plan.faults);
        let probe: Arc<Mutex<Probe>> = Arc::default();
        let rig: Arc<Mutex<Option<Rig>>> = Arc::default();
        let configure = {
            let (watch, probe, rig) = (Arc::clone(&watch), Arc::clone(&probe), Arc::clone(&rig));
            let mutant = plan.mutant;
            move |worker: WorkerBuilder, store: &SimStore| {
                let rigged = Rig::new(store.clone(), Arc::clone(&watch), mutant);
                *rig.lock() = Some(rigged.clone());
                let witness = Probe::default();
                *probe.lock() = witness.clone();
                worker.host::<Desk>("/desks").state(witness).store(rigged)
            }
        };
        let mut schedule = SimSchedule::new().latency(Duration::ZERO..=LATENCY);
        if plan.faults {
            schedule = schedule.faults(FAULTS, FAULTS);
        }
        if plan.lane == Lane::Singles {
            schedule = schedule.single_writes();
        }
        Self {
            sim: sim.clone(),
            node: Node::new(sim, "worker", watch.disk.clone(), configure)
                .schedule(schedule)
                .crash_before(plan.crashes.clone()),
            watch,
            probe,
            rig,
            crash_points: plan.crashes.len(),
            crashes: 0,
            recoveries: 0,
            both_resurrected: false,
            faults: 0,
            faulty: plan.faults,
            scratch_due: false,
            marked: BTreeSet::new(),
            refused: AtomicBool::new(false),
        }
    }

    /// S4.8, then S4.9 for each crash.
    pub(super) async fn play(mut self) -> Result<Outcome, Vec<Violation>> {
        let mut ended = self.first().await;
        loop {
            match ended {
                Err(Cut::Broken) => return Err(self.watch.found()),
                Err(Cut::Crashed) => self.crashed(),
                // A crash after the clean drain comes in the next life.
                Ok(()) if self.crashes < self.crash_points && self.recoveries == 0 => {}
                Ok(()) => break,
            }
            ended = self.recover().await;
        }
        // Where the store fails, what is done before it, and so the number of the operation, is not known beforehand.
        if self.crashes < self.crash_points && !self.faulty {
            self.fault("S6.4", "a crash point was never reached".to_owned());
            return Err(self.watch.found());
        }
        Ok(Outcome {
            ops: self.watch.disk.ops(),
            crashes: self.crashes,
            max_attempts: self.max_attempts(),
            both_resurrected: self.both_resurrected,
            faults: self.faults,
        })
    }

    async fn first(&mut self) -> Result<(), Cut> {
        self.start().await?;
        self.scratch_due = true;
        let answer = self.send("/scratch/put").await?;
        self.accepted("/scratch/put", &answer)?;
        self.place_if_refused().await?;
        self.admit("work", "~", 1).await?;
        self.bump().await?;
        self.place_if_refused().await?;
        // At one time: what one instance does is one log, so one after the other they would hardly ever overlap.
        self.admit_all(&[("kwork", "k1", 101), ("work", "~", 2), ("kwork", "k2", 102)])
            .await?;
        self.place_if_refused().await?;
        self.bump().await?;
        self.place_if_refused().await?;
        self.admit_all(&[("kwork", "k1", 103), ("work", "~", 3)])
            .await?;
        self.place_if_refused().await?;
        self.admit("relay", "~", 201).await?;
        self.admit("relay", "~", 202).await?;
        self.place_if_refused().await?;
        self.drop_scratch().await?;
        self.finish().await
    }

    async fn recover(&mut self) -> Result<(), Cut> {
        self.recoveries += 1;
        self.start().await?;
        self.wake().await?;
        let opened = self.opened();
        if opened != self.marked {
            let what = format!("{opened:?} came back of the marked {:?}", self.marked);
            return Err(self.fault("S5.26", what));
        }
        self.both_resurrected |= opened.len() == 2;
        self.check()?;
        self.probe_fence().await?;
        if self.scratch_due {
            self.drop_scratch().await?;
        }
        self.bump().await?;
        self.place_if_refused().await?;
        let n = self.recoveries;
        self.admit_all(&[
            ("work", "~", 10 + n),
            ("kwork", "k1", 110 + n),
            ("relay", "~", 210 + n),
        ])
        .await?;
        self.finish().await
    }

    /// Waits until all is done, and stops in good order.
    async fn finish(&mut self) -> Result<(), Cut> {
        self.settle().await?;
        self.watch.check_drained();
        self.check()?;
        self.note_faults();
        match self.node.stop().await {
            Ok(()) => {}
            Err(NodeError::Crashed(_)) => return Err(Cut::Crashed),
            Err(error) => return Err(self.fault("S4.8", format!("the stop failed: {error}"))),
        }
        self.watch.check_drained();
        self.check()
    }

    pub(super) async fn start(&mut self) -> Result<(), Cut> {
        self.marked = self.marked_lanes();
        match self.node.start().await {
            Ok(()) => Ok(()),
            Err(NodeError::Crashed(_)) => Err(Cut::Crashed),
            Err(error) => Err(self.fault("S4.8", format!("the start failed: {error}"))),
        }
    }

    /// An abort hands the epoch back (H11.6): what was refused is served again at the next one. Only where the store fails
    /// is anything refused.
    pub(super) async fn place_anew(&mut self) -> Result<(), Cut> {
        self.note_faults();
        match self.node.stop().await {
            Err(NodeError::Crashed(_)) => Err(Cut::Crashed),
            _unclean => self.start().await,
        }
    }

    async fn place_if_refused(&mut self) -> Result<(), Cut> {
        match self.refused.swap(false, Ordering::AcqRel) {
            true => self.place_anew().await,
            false => Ok(()),
        }
    }

    /// What a crash leaves is what counts from here on.
    pub(super) fn crashed(&mut self) {
        self.crashes += 1;
        self.note_faults();
        self.probe.lock().bury();
        let image = self.watch.look();
        self.watch.ledger.lock().adopt(&image);
    }

    pub(super) fn check(&self) -> Result<(), Cut> {
        self.watch.check();
        self.watch.report(self.probe.lock().complaints());
        match self.watch.found().is_empty() {
            true => Ok(()),
            false => Err(Cut::Broken),
        }
    }

    pub(super) fn fault(&self, number: &'static str, what: String) -> Cut {
        self.watch.report(vec![Violation { number, what }]);
        Cut::Broken
    }

    pub(super) fn note_faults(&mut self) {
        let log = self.node.store().map(SimStore::log);
        let faults = log.into_iter().flatten();
        let faults = faults.filter(|op| op.outcome != SimOutcome::Applied);
        self.faults += faults.count();
    }

    /// The keyed lanes that have opened in this life.
    pub(super) fn opened(&self) -> BTreeSet<String> {
        self.probe.lock().lanes()
    }

    fn marked_lanes(&self) -> BTreeSet<String> {
        let image = self.watch.look();
        let marked = image.rows.iter().filter(|(_, row)| row.marked);
        let keyed = marked.filter(|(name, _)| name.0 == "kwork");
        keyed.map(|(name, _)| name.1.clone()).collect()
    }

    fn max_attempts(&self) -> u64 {
        let image = self.watch.look();
        let runs = image.rows.values().flat_map(|row| row.log());
        runs.map(|run| run.1).max().unwrap_or(0)
    }
}
