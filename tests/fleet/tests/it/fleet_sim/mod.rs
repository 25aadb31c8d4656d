//! A fleet in virtual time: nodes, workers and a store in one process, with everything that goes wrong between them
//! (P12, S8).
//!
//! `PINNED_FLEET_SEEDS` says how many seeds (100, unless it does); `PINNED_SEED` runs one seed alone, and shows its trace.
//!
//! | file | what |
//! |---|---|
//! | `net`, `transport` | the network: slow, lossy, cut; and calls that come twice |
//! | `fleet`, `client` | nodes, workers and the store; and who asks |
//! | `watch`, `settle` | what must never be seen; and what must be in the end |
//! | `program` | random faults |
//! | `story`, `admission` | the cluster story, and its durable work |
//! | `mutant` | broken fleets, which must be found out |

mod admission;
mod client;
mod fleet;
mod mutant;
mod net;
mod program;
mod settle;
mod story;
mod transport;
mod watch;

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pinned_testing::sim::Sim;

use fleet::{Fleet, Shape, TTL};
use mutant::Mutant;
use program::{BOUND, IDS, Program, id_of};

/// How many seeds a check of everything runs.
const ROUTINE: u64 = 100;
/// Within how many seeds a broken fleet is found out.
const SUSPICION: u64 = 20;

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    violations: Vec<String>,
    trace: Vec<String>,
}

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let value = value.parse();
    Some(value.unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Random faults, by the seed.
fn run(seed: u64, mutant: Option<Mutant>) -> Outcome {
    let (violations, trace) = Sim::run(seed, move |sim| async move {
        let shape = Shape {
            nodes: 2,
            workers: 3,
            mutant,
            admission: None,
        };
        let fleet = Fleet::start(&sim, shape).await;
        // The quarantine of a cold start.
        sim.advance(TTL + TTL / 3).await;
        let program = Program::new(&fleet);
        program.run().await;
        let ids: Vec<_> = (0..IDS).map(id_of).collect();
        settle::settle(&fleet, program.client(), &ids, BOUND).await;
        program.look().await;
        let outcome = (fleet.watch.verdict(), sim.trace());
        fleet.end();
        outcome
    });
    let trace = trace.iter().map(ToString::to_string).collect();
    Outcome { violations, trace }
}

/// The lowest seed that goes wrong, and how.
fn first_failure(seeds: u64, run: impl Fn(u64) -> Outcome + Sync) -> Option<(u64, Vec<String>)> {
    let (next, failure) = (AtomicU64::new(0), Mutex::new(None::<(u64, Vec<String>)>));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds || failure.lock().is_some() {
                        return;
                    }
                    let violations = run(seed).violations;
                    if violations.is_empty() {
                        continue;
                    }
                    let mut failure = failure.lock();
                    if failure.as_ref().is_none_or(|(lowest, _)| seed < *lowest) {
                        *failure = Some((seed, violations));
                    }
                }
            });
        }
    });
    failure.into_inner()
}

/// Runs all seeds, or the one that is asked for.
fn check(test: &str, run: impl Fn(u64) -> Outcome + Sync) {
    if let Some(seed) = setting("PINNED_SEED") {
        let outcome = run(seed);
        outcome.trace.iter().for_each(|event| println!("{event}"));
        let violations = outcome.violations.join("\n");
        return assert!(violations.is_empty(), "seed {seed}:\n{violations}");
    }
    let seeds = setting("PINNED_FLEET_SEEDS").unwrap_or(ROUTINE);
    if let Some((seed, violations)) = first_failure(seeds, run) {
        panic!(
            "seed {seed}:\n{}\nreplay: PINNED_SEED={seed} cargo test -p fleet-tests --test it fleet_sim::{test}",
            violations.join("\n")
        );
    }
}

// P4.6, P12.1, P12.2, P12.3, P12.4
#[test]
fn whatever_happens_to_a_fleet_nothing_lives_twice_and_nothing_is_lost() {
    check("whatever_happens", |seed| run(seed, None));
}

// S8
#[test]
fn an_owner_dies_twice_and_the_registry_once() {
    check("an_owner_dies_twice", story::run);
}

// S8.9
#[test]
fn one_seed_has_one_trace() {
    for seed in 0..3 {
        let (one, other) = (run(seed, None), run(seed, None));
        let differ = one.trace.iter().zip(&other.trace).enumerate();
        let differ = differ.into_iter().find(|(_, (one, other))| one != other);
        assert_eq!(differ, None, "seed {seed} replays");
        assert_eq!(one, other, "seed {seed} replays");
        assert_eq!(story::run(seed), story::run(seed), "seed {seed} replays");
    }
}

#[test]
fn every_broken_fleet_is_found_out() {
    for mutant in Mutant::ALL {
        let (seed, violations) = first_failure(SUSPICION, |seed| run(seed, Some(mutant)))
            .unwrap_or_else(|| panic!("{mutant:?} passes"));
        let expected = mutant.breaks();
        assert!(
            violations
                .iter()
                .any(|violation| violation.contains(expected)),
            "{mutant:?} with seed {seed} breaks {expected}, and not: {violations:?}"
        );
    }
}
