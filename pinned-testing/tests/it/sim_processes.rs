//! Crashing a part of a simulation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinned_testing::sim::{Crashed, Sim, SimProcess};
use tokio::sync::Notify;

const SECOND: Duration = Duration::from_secs(1);

/// Tells of being dropped or resumed: what a crash must not bring about.
#[derive(Clone, Default)]
struct Trail(Arc<AtomicBool>);

impl Trail {
    fn is_touched(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A task that waits for `event`; the trail is touched when it is resumed, or dropped.
fn waiter(process: &SimProcess, event: &Arc<Notify>, trail: &Arc<AtomicBool>) {
    let (event, trail) = (Arc::clone(event), Trail(Arc::clone(trail)));
    process.domain().spawn(async move {
        event.notified().await;
        drop(trail);
    });
}

#[test]
fn a_crash_abandons_tasks_without_cleanup_or_resumption() {
    // S1.11
    Sim::run(1, |sim| async move {
        let (event, trail) = (Arc::new(Notify::new()), Trail::default());
        let process = sim.process("worker");
        waiter(&process, &event, &trail.0);
        sim.advance(SECOND).await;
        process.crash();
        process.crash();
        event.notify_waiters();
        sim.advance(SECOND).await;
        assert!(!trail.is_touched());
        assert!(process.is_crashed());
    });
}

#[test]
fn an_abort_that_comes_after_the_crash_cleans_nothing_up() {
    // S1.11
    Sim::run(1, |sim| async move {
        let trail = Trail::default();
        let kept = Trail(Arc::clone(&trail.0));
        let process = sim.process("worker");
        let task = process.domain().spawn(async move {
            let _kept = kept;
            std::future::pending::<()>().await;
        });
        sim.advance(SECOND).await;
        process.crash();
        task.abort();
        sim.advance(SECOND).await;
        assert!(!trail.is_touched());
    });
}

#[test]
fn the_timers_of_the_dead_vanish_and_others_go_on() {
    // S1.7, S1.12
    let elapsed = Sim::run(1, |sim| async move {
        let (dead, survivor) = (sim.process("dead"), sim.process("survivor"));
        for process in [&dead, &survivor] {
            let domain = process.domain();
            process.domain().spawn(async move {
                for _ in 0..10 {
                    domain.sleep(SECOND * 60).await;
                }
            });
        }
        sim.advance(SECOND).await;
        dead.crash();
        let domain = survivor.domain();
        let slept = survivor.run(async move { domain.sleep(SECOND * 5).await });
        assert_eq!(slept.await, Ok(()));
        sim.elapsed()
    });
    assert_eq!(elapsed, SECOND * 6);
}

#[test]
fn a_process_that_crashes_itself_comes_to_its_next_await_and_no_further() {
    // S1.11
    Sim::run(1, |sim| async move {
        let process = sim.process("worker");
        let trail = Trail::default();
        let (own, kept) = (process.clone(), Trail(Arc::clone(&trail.0)));
        let ran = process.run(async move {
            own.crash();
            own.domain().spawn(async move { drop(kept) });
            own.domain().sleep(Duration::ZERO).await;
            unreachable!("it is dead");
        });
        assert_eq!(ran.await, Err::<(), _>(Crashed));
        sim.advance(SECOND).await;
        assert!(!trail.is_touched(), "what the dead start does not run");
    });
}

#[test]
fn what_a_program_came_to_before_the_crash_counts() {
    // S3.3
    Sim::run(1, |sim| async move {
        let process = sim.process("worker");
        let own = process.clone();
        let domain = sim.domain();
        let (outcome, ()) = tokio::join!(process.run(async { 7 }), async {
            domain.sleep(Duration::ZERO).await;
            own.crash();
        });
        assert_eq!(outcome, Ok(7));
    });
}

#[test]
fn each_generation_draws_afresh_and_no_process_shifts_another() {
    // S1.9, S1.12
    let draws = |extra: bool| {
        Sim::run(3, move |sim| async move {
            let draw = |process: &SimProcess| process.domain().rng("x").map(|rng| rng.u64());
            if extra {
                let _ = draw(&sim.process("other"));
            }
            let first = sim.process("worker");
            let both = [draw(&first), draw(&first), draw(&sim.process("worker"))];
            both.map(|draw| draw.expect("a label"))
        })
    };
    let [first, second, restarted] = draws(false);
    assert!(first != second && first != restarted && second != restarted);
    assert_eq!(draws(true), draws(false));
}

#[test]
fn one_seed_is_one_trace_and_it_tells_of_crashes() {
    // S1.10
    let trace = || {
        Sim::run(5, |sim| async move {
            let process = sim.process("worker");
            waiter(&process, &Arc::default(), &Arc::default());
            sim.advance(SECOND).await;
            process.crash();
            sim.trace()
        })
    };
    let told: Vec<_> = trace().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "0.000000000 main start worker/1",
            "0.000000000 main spawn task-1",
            "1.000000000 main crash worker/1"
        ]
    );
    assert_eq!(trace(), trace());
}
