//! All runs of many seeds, side by side (S6).

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parking_lot::Mutex;
use pinned::domain::{Rng, RngStreams};

use super::mutant::Mutant;
use super::plan::{Lane, Plan};
use super::report::{Broken, Report};
use super::run::{Outcome, run};

/// How much of one seed is run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Depth {
    /// A crash before each operation, as many crashes in pairs, and runs with faults (S6.2, S6.3).
    Every,
    /// Some of them, drawn from the seed.
    Drawn,
}

/// The runs with faults of one lane: that many without a crash, and as many with.
const FAULTY: usize = 6;

impl Depth {
    fn singles(self, points: u64) -> usize {
        match self {
            Self::Every => usize::try_from(points).unwrap_or(usize::MAX),
            Self::Drawn => 4,
        }
    }

    fn doubles(self, points: u64) -> usize {
        match self {
            Self::Every => self.singles(points),
            Self::Drawn => 2,
        }
    }

    fn faulty(self) -> usize {
        match self {
            Self::Every => FAULTY,
            Self::Drawn => 1,
        }
    }
}

/// Runs the seeds below `seeds`, the first `routine` of them in depth, on every core; ends at the first run that fails.
pub(super) fn sweep(seeds: u64, routine: u64) -> Result<Report, Broken> {
    let lanes = Lane::ALL.len() as u64;
    let (next, end) = (AtomicU64::new(0), AtomicU64::new(seeds * lanes));
    let report = Mutex::new(Report::default());
    let broken = Mutex::new(None);
    let work = || {
        loop {
            let unit = next.fetch_add(1, Ordering::Relaxed);
            if unit >= end.load(Ordering::Relaxed) {
                return;
            }
            let seed = unit / lanes;
            let lane = Lane::ALL[usize::from(unit % lanes == 1)];
            let depth = if seed < routine {
                Depth::Every
            } else {
                Depth::Drawn
            };
            match sweep_lane(&Plan::new(seed, lane), depth, &[]) {
                Ok(of_lane) => report.lock().add(&of_lane),
                Err(failure) => {
                    end.store(0, Ordering::Relaxed);
                    broken.lock().get_or_insert(failure);
                }
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                resume_unwind(panic);
            }
        }
    });
    match broken.into_inner() {
        Some(broken) => Err(broken),
        None => {
            let mut report = report.into_inner();
            report.seeds = seeds;
            Ok(report)
        }
    }
}

/// The same over a sabotaged store, which breaks the contract sooner or later: the run that names what the mutant breaks, or
/// else the first that goes wrong. What goes wrong first may be something that follows from it.
pub(super) fn sweep_sabotaged(seed: u64, mutant: Mutant) -> Option<Broken> {
    Lane::ALL.into_iter().find_map(|lane| {
        let plan = Plan {
            mutant: Some(mutant),
            ..Plan::new(seed, lane)
        };
        sweep_lane(&plan, Depth::Every, mutant.breaks()).err()
    })
}

/// One seed and lane: without a crash, with one, with two, with faults. It ends with the first run that breaks one of the
/// invariants that are `sought`, or any if none is.
fn sweep_lane(plan: &Plan, depth: Depth, sought: &[&str]) -> Result<Report, Broken> {
    let mut report = Report::default();
    let other = RefCell::new(None);
    let mut go = |plan: Plan| match run(&plan) {
        Ok(outcome) => {
            report.count(&plan, &outcome);
            Ok(Some(outcome))
        }
        Err(failure) => {
            let broken = Broken { plan, failure };
            if sought.is_empty() || broken.names(sought) {
                return Err(broken);
            }
            other.borrow_mut().get_or_insert(broken);
            Ok(None)
        }
    };
    let dice = RngStreams::seeded(plan.seed);
    let dice = dice.get(&format!("sweep/{plan}")).expect("a label");
    let ops = go(plan.clone())?.map_or(0, |outcome| outcome.ops);
    // S6.2: the last point comes after the clean drain.
    let points = ops + 1;
    let mut pairs = Vec::new();
    for point in sample(points, depth.singles(points), &dice) {
        let first = point + 1;
        let Some(Outcome { ops, .. }) = go(plan.crashing([first]))? else {
            continue;
        };
        pairs.extend((first + 1..=ops).map(|second| [first, second]));
    }
    let doubles = depth.doubles(points).min(pairs.len());
    let all = pairs.len() as u64;
    for pair in sample(all, doubles, &dice) {
        go(plan.crashing(pairs[index(pair)]))?;
    }
    for _ in 0..depth.faulty() {
        let point = 1 + dice.below(points);
        go(plan.faulty().crashing([point]))?;
    }
    go(plan.faulty())?;
    if let Some(broken) = other.into_inner() {
        return Err(broken);
    }
    report.pairs += all;
    report.points += points;
    Ok(report)
}

/// `count` of the numbers below `all`, each once, in ascending order; all of them where there are no more.
fn sample(all: u64, count: usize, dice: &Rng) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..all).collect();
    if count < numbers.len() {
        for place in 0..count {
            let rest = all - place as u64;
            numbers.swap(place, place + index(dice.below(rest)));
        }
        numbers.truncate(count);
        numbers.sort_unstable();
    }
    numbers
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("an index of what is in memory")
}
