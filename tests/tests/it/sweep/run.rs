//! One run: a first life of a node, crashes where the plan says so, and recoveries until all is done (S4.8, S4.9).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::StatusCode;
use parking_lot::Mutex;
use pinned::durability::{Claim, Doc, RowFilter, StateStore, StoreError, TrayKey};
use pinned_testing::sim::{
    Crashed, Node, NodeError, Sim, SimFailure, SimOptions, SimSchedule, StoreFailed, TraceEvent,
};
use pinned_testing::{TestClient, TestResponse};

use super::image::{Name, instance, name};
use super::invariants::Violation;
use super::mutant::Mutant;
use super::plan::{Lane, Plan};
use super::probe::Probe;
use super::rig::Rig;
use super::watch::Watch;
use super::workload::Desk;

/// S3.4
const LATENCY: Duration = Duration::from_millis(10);
/// How long a request, an activation and a drain may take.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
/// What a store rejects, and what it leaves open, in a run with faults.
const FAULTS: f64 = 0.02;
/// How often an instance whose placement was handed back is placed anew, in a run with faults.
const PLACEMENTS: u32 = 20;

/// What came of a run that kept the contract.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// The operations of the store, over all lives.
    pub(super) ops: u64,
    pub(super) crashes: usize,
    pub(super) max_attempts: u64,
    /// Both keyed lanes came back at once.
    pub(super) both_resurrected: bool,
    pub(super) faults: usize,
}

/// Why a run failed.
#[derive(Debug, PartialEq)]
pub(super) enum Failure {
    Broken(Vec<Violation>),
    Simulation(SimFailure),
}

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

/// Runs the plan.
pub(super) fn run(plan: &Plan) -> Result<Outcome, Failure> {
    traced(plan).0
}

/// The same with the trace of the simulation (S6.5).
pub(super) fn traced(plan: &Plan) -> (Result<Outcome, Failure>, Vec<TraceEvent>) {
    let trace = Arc::new(Mutex::new(Vec::new()));
    let outcome = Sim::try_run(SimOptions::new(plan.seed), |sim| {
        let (plan, trace) = (plan.clone(), Arc::clone(&trace));
        async move {
            let outcome = Scene::new(&sim, &plan).play().await;
            *trace.lock() = sim.trace();
            outcome
        }
    });
    let outcome = match outcome {
        Ok(outcome) => outcome.map_err(Failure::Broken),
        Err(failure) => Err(Failure::Simulation(failure)),
    };
    let trace = std::mem::take(&mut *trace.lock());
    (outcome, trace)
}

/// A run under way.
pub(super) struct Scene {
    sim: Sim,
    pub(super) node: Node,
    pub(super) watch: Arc<Watch>,
    probe: Arc<Mutex<Probe>>,
    rig: Arc<Mutex<Option<Rig>>>,
    crash_points: usize,
    crashes: usize,
    recoveries: u64,
    both_resurrected: bool,
    faults: usize,
    faulty: bool,
    scratch_due: bool,
}

impl Scene {
    pub(super) fn new(sim: &Sim, plan: &Plan) -> Self {
        let watch = Watch::new(plan.faults);
        let probe: Arc<Mutex<Probe>> = Arc::default();
        let rig: Arc<Mutex<Option<Rig>>> = Arc::default();
        let configure = {
            let (watch, probe, rig) = (Arc::clone(&watch), Arc::clone(&probe), Arc::clone(&rig));
            let mutant: Option<Mutant> = plan.mutant;
            move |worker: pinned::WorkerBuilder, store: &_| {
                let rigged = Rig::new(Clone::clone(store), Arc::clone(&watch), mutant);
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
        }
    }

    /// S4.8, then S4.9 for each crash.
    async fn play(mut self) -> Result<Outcome, Vec<Violation>> {
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
        self.admit("work", "~", 1).await?;
        self.bump().await?;
        // At one time: what one instance does is one log, so one after the other they would hardly ever overlap.
        self.admit_all(&[("kwork", "k1", 101), ("work", "~", 2), ("kwork", "k2", 102)])
            .await?;
        self.bump().await?;
        self.admit_all(&[("kwork", "k1", 103), ("work", "~", 3)])
            .await?;
        self.admit("relay", "~", 201).await?;
        self.admit("relay", "~", 202).await?;
        self.drop_scratch().await?;
        self.finish().await
    }

    async fn recover(&mut self) -> Result<(), Cut> {
        let marked = self.marked_lanes();
        self.recoveries += 1;
        self.start().await?;
        self.wake().await?;
        let opened = self.opened();
        if opened != marked {
            let what = format!("{opened:?} came back of the marked {marked:?}");
            return Err(self.fault("S5.26", what));
        }
        self.both_resurrected |= opened.len() == 2;
        self.check()?;
        self.probe_fence().await?;
        if self.scratch_due {
            self.drop_scratch().await?;
        }
        self.bump().await?;
        let n = self.recoveries;
        self.admit_all(&[
            ("work", "~", 10 + n),
            ("kwork", "k1", 110 + n),
            ("relay", "~", 210 + n),
        ])
        .await?;
        self.finish().await
    }

    /// Waits until all is done (S4.7).
    pub(super) async fn settle(&mut self) -> Result<(), Cut> {
        self.until("/idle", "S5.28", |answer| async move {
            answer.status() == StatusCode::OK && answer.json::<bool>().await
        })
        .await?;
        self.check()
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
        match self.node.start().await {
            Ok(()) => Ok(()),
            Err(NodeError::Crashed(_)) => Err(Cut::Crashed),
            Err(error) => Err(self.fault("S4.8", format!("the start failed: {error}"))),
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

    pub(super) async fn wake(&mut self) -> Result<(), Cut> {
        self.until("/_wake", "S5.28", |answer| async move {
            answer.status() == StatusCode::OK
        })
        .await
    }

    pub(super) async fn admit(&self, lane: &str, id: &str, n: u64) -> Result<(), Cut> {
        let of_lane: Name = name(lane, id);
        self.watch.ledger.lock().sent(of_lane.clone(), n);
        let path = match (lane, id) {
            ("work", _) => format!("/admit/{n}"),
            ("relay", _) => format!("/relay/{n}"),
            _ => format!("/admit/{id}/{n}"),
        };
        let answer = self.send(&path).await?;
        if self.accepted(&path, &answer)? {
            self.watch.ledger.lock().acknowledged(of_lane, n);
        }
        self.check()
    }

    async fn admit_all(&self, items: &[(&str, &str, u64)]) -> Result<(), Cut> {
        let admissions = items.iter().map(|(lane, id, n)| self.admit(lane, id, *n));
        let admitted = join_all(admissions).await;
        admitted.into_iter().collect()
    }

    async fn bump(&mut self) -> Result<(), Cut> {
        self.watch.ledger.lock().bump_sent();
        let answer = self.send("/bump").await?;
        if self.accepted("/bump", &answer)? {
            let count: u64 = answer.json().await;
            self.watch.ledger.lock().bump_confirmed(count);
        }
        self.check()
    }

    async fn drop_scratch(&mut self) -> Result<(), Cut> {
        self.until("/scratch/drop", "S5.28", |answer| async move {
            answer.status() == StatusCode::OK
        })
        .await?;
        self.scratch_due = false;
        self.check()
    }

    /// S5.27
    async fn probe_fence(&mut self) -> Result<(), Cut> {
        let rig = self.rig.lock().clone();
        let rig = rig.expect("the node was started");
        for epoch in 0..self.node.epoch() {
            let claim = Claim::new(instance(), epoch);
            let key = TrayKey::new("work", "~");
            let written = self
                .unfailing(|| rig.set_tray(claim.clone(), key.clone(), false, Doc::empty()))
                .await?;
            let listed = self
                .unfailing(|| rig.list(claim.clone(), RowFilter::all()))
                .await?;
            for (what, is_fenced) in [("write", written), ("list", listed)] {
                if !is_fenced {
                    let what = format!("a {what} at epoch {epoch} was not fenced off");
                    return Err(self.fault("S5.27", what));
                }
            }
        }
        Ok(())
    }

    /// Whether the operation lost its fence; failures that say nothing are tried again.
    async fn unfailing<T: Send + 'static>(
        &self,
        op: impl Fn() -> pinned::durability::StoreFuture<T>,
    ) -> Result<bool, Cut> {
        loop {
            // Beside the process: a crash leaves it without an answer.
            let op = op();
            let outcome: Result<T, StoreError> = self.node.run(|_| op).await?;
            match outcome {
                Err(error) if StoreFailed::is_why(&error) => {}
                Err(error) => return Ok(error.is_fence_lost()),
                Ok(_) => return Ok(false),
            }
        }
    }

    fn accepted(&self, path: &str, answer: &TestResponse) -> Result<bool, Cut> {
        let accepted = answer.status() == StatusCode::OK;
        if !accepted && !self.faulty {
            let what = format!("{path} was answered with {}", answer.status());
            return Err(self.fault("S4.8", what));
        }
        Ok(accepted)
    }

    async fn send(&self, path: &str) -> Result<TestResponse, Cut> {
        let url = format!("/desks/a{path}");
        let answer = self.node.run(|client: TestClient| async move {
            let domain = client.worker().domain().clone();
            domain.timeout(PATIENCE, client.post(url).send()).await
        });
        match answer.await? {
            Ok(answer) => Ok(answer),
            Err(_elapsed) => Err(self.fault("S5.28", format!("{path} is not answered"))),
        }
    }

    /// Sends it until `done` says so. In a run with faults, an instance whose placement was handed back is placed anew.
    async fn until<F: Future<Output = bool>>(
        &mut self,
        path: &str,
        number: &'static str,
        done: impl Fn(TestResponse) -> F,
    ) -> Result<(), Cut> {
        let mut placements = 0;
        loop {
            let until = self.sim.elapsed() + PATIENCE;
            while self.sim.elapsed() < until {
                let answer = self.send(path).await?;
                if done(answer).await {
                    return Ok(());
                }
                self.check()?;
                self.sim.domain().sleep(PAUSE).await;
            }
            if !self.faulty || placements == PLACEMENTS {
                // What is not done says more than that it is not.
                self.watch.check_drained();
                let rows = self.watch.look().to_string();
                return Err(self.fault(number, format!("{path} never came to its end: {rows}")));
            }
            placements += 1;
            self.note_faults();
            match self.node.stop().await {
                Err(NodeError::Crashed(_)) => return Err(Cut::Crashed),
                _unclean => self.start().await?,
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), Cut> {
        self.watch.check();
        self.watch.report(self.probe.lock().complaints());
        match self.watch.found().is_empty() {
            true => Ok(()),
            false => Err(Cut::Broken),
        }
    }

    fn fault(&self, number: &'static str, what: String) -> Cut {
        self.watch.report(vec![Violation { number, what }]);
        Cut::Broken
    }

    fn note_faults(&mut self) {
        let log = self.node.store().map(pinned_testing::sim::SimStore::log);
        let faults = log.into_iter().flatten();
        let faults = faults.filter(|op| op.outcome != pinned_testing::sim::SimOutcome::Applied);
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulation(failure) => failure.fmt(f),
            Self::Broken(violations) => {
                let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
                write!(f, "\n  {}", violations.join("\n  "))
            }
        }
    }
}
