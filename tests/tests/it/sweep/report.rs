//! What a sweep comes to.

use std::fmt;

use super::invariants::Violation;
use super::plan::Plan;
use super::run::{Failure, Outcome};

#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) seeds: u64,
    pub(super) runs: u64,
    pub(super) crashes: u64,
    pub(super) ops: u64,
    /// The runs with one crash and with two, of as many as there could be.
    pub(super) singles: u64,
    pub(super) points: u64,
    pub(super) doubles: u64,
    pub(super) pairs: u64,
    pub(super) faulty: u64,
    pub(super) faults: u64,
    /// Without a crash and without faults.
    pub(super) baseline_attempts: u64,
    pub(super) max_attempts: u64,
    /// Runs that brought both keyed lanes back at once.
    pub(super) both_resurrected: u64,
    /// Runs that did not crash as often as they were to.
    pub(super) astray: u64,
}

/// A run that broke a promise.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) plan: Plan,
    pub(super) failure: Failure,
}

impl Report {
    pub(super) fn count(&mut self, plan: &Plan, outcome: &Outcome) {
        self.runs += 1;
        self.crashes += outcome.crashes as u64;
        self.ops += outcome.ops;
        self.faults += outcome.faults as u64;
        self.max_attempts = self.max_attempts.max(outcome.max_attempts);
        self.both_resurrected += u64::from(outcome.both_resurrected);
        let astray = !plan.faults && outcome.crashes != plan.crashes.len();
        self.astray += u64::from(astray);
        match (plan.faults, plan.crashes.len()) {
            (true, _) => self.faulty += 1,
            (false, 0) => self.baseline_attempts = self.baseline_attempts.max(outcome.max_attempts),
            (false, 1) => self.singles += 1,
            (false, _) => self.doubles += 1,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.runs += other.runs;
        self.crashes += other.crashes;
        self.ops += other.ops;
        self.singles += other.singles;
        self.points += other.points;
        self.doubles += other.doubles;
        self.pairs += other.pairs;
        self.faulty += other.faulty;
        self.faults += other.faults;
        self.baseline_attempts = self.baseline_attempts.max(other.baseline_attempts);
        self.max_attempts = self.max_attempts.max(other.max_attempts);
        self.both_resurrected += other.both_resurrected;
        self.astray += other.astray;
    }
}

impl Broken {
    /// Whether one of these invariants is named.
    pub(super) fn names(&self, numbers: &[&str]) -> bool {
        match &self.failure {
            Failure::Broken(violations) => {
                let named = |violation: &Violation| numbers.contains(&violation.number);
                violations.iter().any(named)
            }
            Failure::Simulation(_) => false,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seeds,
            runs,
            crashes,
            ops,
            singles,
            points,
            doubles,
            pairs,
            faulty,
            faults,
            max_attempts,
            ..
        } = self;
        write!(
            f,
            "{seeds} seeds, {runs} runs, {crashes} crashes, {ops} operations; {singles} of {points} crash points, \
             {doubles} of {pairs} pairs of them, {faulty} runs with {faults} faults; up to attempt {max_attempts}"
        )
    }
}

/// Names the run, what it broke, and how to see it again (S6.5).
impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, failure } = self;
        writeln!(f, "run {plan}: {failure}")?;
        write!(
            f,
            "see its trace: PINNED_RUN={plan} cargo test -p tests --test it sweep::replay -- --nocapture"
        )
    }
}
