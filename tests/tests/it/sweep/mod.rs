//! Crashes at every operation of the store, in virtual time (S4 to S7).
//!
//! One instance with trays of every form works through items, while its process is crashed before each operation of its
//! store in turn, also twice, and while the store fails now and then. After each operation the rows on the disk are held
//! against the contract, and each run must come to its end. Stores that break the contract must be found out.
//!
//! `PINNED_SEEDS` says how many seeds (20): of the first two every crash point is run, of the others some.
//! `PINNED_RUN` names a run to see the trace of.
//!
//! | file | what |
//! |---|---|
//! | `workload` | the instance |
//! | `plan`, `run` | one run, and what comes of it |
//! | `scene`, `requests` | its lives, and what the client asks in them |
//! | `ledger`, `probe` | what the client knows, and what the instance's own code has seen |
//! | `image`, `invariants` | the rows, and what must hold of them |
//! | `rig`, `watch`, `mutant` | the store: watched, and sabotaged |
//! | `campaign`, `report` | all runs of many seeds |
//! | `directed` | seams looked at one by one |

mod campaign;
mod directed;
mod image;
mod invariants;
mod ledger;
mod mutant;
mod plan;
mod probe;
mod report;
mod requests;
mod rig;
mod run;
mod scene;
mod watch;
mod workload;

use mutant::Mutant;
use plan::{Lane, Plan};

/// The seeds of which every crash point is run (S6.7).
const ROUTINE: u64 = 2;

fn seeds() -> u64 {
    match std::env::var("PINNED_SEEDS") {
        Ok(seeds) => seeds.parse().expect("PINNED_SEEDS is a number"),
        Err(_) => 20,
    }
}

#[test]
fn whatever_the_crash_no_promise_is_broken() {
    // S6
    let seeds = seeds();
    let report = campaign::sweep(seeds, ROUTINE).unwrap_or_else(|broken| panic!("{broken}"));
    println!("{report}");
    // S6.6
    assert_eq!(
        report.baseline_attempts, 1,
        "without a crash nothing runs twice"
    );
    assert_eq!(report.astray, 0, "each run crashed where it was to");
    assert!(report.max_attempts > 1, "something ran again");
    assert!(
        report.both_resurrected > 0,
        "both keyed lanes came back at once"
    );
    if seeds <= ROUTINE {
        assert_eq!(report.singles, report.points);
    }
}

#[test]
fn every_store_that_breaks_the_contract_is_found_out() {
    // S7
    let mut missed = Vec::new();
    for mutant in Mutant::ALL {
        match campaign::sweep_sabotaged(0, mutant) {
            None => missed.push(format!("{mutant:?} passes")),
            Some(broken) => {
                println!("{mutant:?}: {broken}");
                if !broken.names(mutant.breaks()) {
                    let expected = mutant.breaks();
                    missed.push(format!("{mutant:?} breaks {expected:?}, and not: {broken}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn replay() {
    // S6.5
    let named = std::env::var("PINNED_RUN").ok();
    let plan = match &named {
        Some(named) => named.parse().unwrap_or_else(|error| panic!("{error}")),
        None => Plan::new(1, Lane::Singles).crashing([20, 60]),
    };
    let (outcome, trace) = run::traced(&plan);
    if named.is_some() {
        for event in &trace {
            println!("{event}");
        }
        match &outcome {
            Ok(outcome) => println!("run {plan}: {outcome:?}"),
            Err(failure) => println!("run {plan}: {failure}"),
        }
    }
    let (again, retrace) = run::traced(&plan);
    assert_eq!(again, outcome, "a run replays");
    let differ = trace.iter().zip(&retrace).find(|(one, other)| one != other);
    assert!(
        differ.is_none() && trace.len() == retrace.len(),
        "a run replays: {differ:?}"
    );
}
