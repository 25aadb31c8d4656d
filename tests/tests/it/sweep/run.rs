//! One run, and what comes of it.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use pinned_testing::sim::{Sim, SimFailure, SimOptions, TraceEvent};

use super::invariants::Violation;
use super::plan::Plan;
use super::scene::Scene;

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
