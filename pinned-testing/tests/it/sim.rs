//! The simulated world.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use pinned::domain::{Event, TaskError};
use pinned::lease::{Lease, LeaseSettings};
use pinned::{HostOptions, PinnedWorker};
use pinned_testing::TestApp;
use pinned_testing::sim::{Sim, SimFailure, SimOptions, TraceEvent};

use crate::room::Room;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn time_jumps_to_the_next_deadline_exactly() {
    // S1.3, S1.4
    Sim::run(0, |sim| async move {
        let domain = sim.domain();
        let odd = Duration::from_nanos(1_500_000_001);
        let (start, wall) = (domain.monotonic(), domain.now());
        assert_eq!(
            wall,
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
        );
        domain.sleep(odd).await;
        assert_eq!(domain.monotonic() - start, odd);
        assert_eq!(domain.now(), wall + odd);
        assert_eq!(sim.elapsed(), odd);
    });
}

#[test]
fn a_sleep_of_nothing_yields_without_moving_the_clock() {
    // S1.6
    Sim::run(0, |sim| async move {
        let domain = sim.domain();
        let task = domain.spawn(async {});
        domain.sleep(Duration::ZERO).await;
        assert!(task.is_finished());
        assert_eq!(sim.elapsed(), Duration::ZERO);
    });
}

/// The order in which ten tasks wake that sleep for the same time.
fn order_of_wakes(seed: u64) -> Vec<u32> {
    Sim::run(seed, |sim| async move {
        let domain = sim.domain();
        let order = Arc::<Mutex<Vec<u32>>>::default();
        for number in 0..10 {
            let (domain, order) = (domain.clone(), Arc::clone(&order));
            sim.domain().spawn(async move {
                domain.sleep(SECOND).await;
                order.lock().push(number);
            });
        }
        sim.advance(SECOND).await;
        order.lock().clone()
    })
}

#[test]
fn the_seed_draws_the_order_of_what_is_due_at_once() {
    // S1.5
    let first = order_of_wakes(1);
    assert_eq!(first, order_of_wakes(1));
    assert_ne!(first, order_of_wakes(2));
    let mut sorted = first.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..10).collect::<Vec<_>>());
}

#[test]
fn runnable_tasks_run_in_the_order_in_which_they_came() {
    // S1.5
    for seed in 0..5 {
        let order = Sim::run(seed, |sim| async move {
            let order = Arc::<Mutex<Vec<u32>>>::default();
            for number in 0..10 {
                let order = Arc::clone(&order);
                sim.domain().spawn(async move { order.lock().push(number) });
            }
            sim.advance(Duration::ZERO).await;
            order.lock().clone()
        });
        assert_eq!(order, (0..10).collect::<Vec<_>>());
    }
}

#[test]
fn advance_returns_when_all_that_is_due_has_run() {
    Sim::run(0, |sim| async move {
        let domain = sim.domain();
        let done = Event::new();
        domain.spawn({
            let (domain, done) = (domain.clone(), done.clone());
            async move {
                for _ in 0..5 {
                    domain.sleep(SECOND).await;
                    // What is due at the same instant counts as well.
                    domain.spawn(async {}).await.expect("it cannot fail");
                    domain.sleep(Duration::ZERO).await;
                }
                done.set();
            }
        });
        sim.advance(5 * SECOND - Duration::from_nanos(1)).await;
        assert!(!done.is_set());
        sim.advance(Duration::from_nanos(1)).await;
        assert!(done.is_set());
    });
}

#[test]
fn a_deadlock_is_a_failure_that_names_who_waits() {
    // S1.7
    let failure = Sim::try_run(SimOptions::new(3), |sim| async move {
        let domain = sim.domain();
        domain.sleep(SECOND).await;
        let never = Event::new();
        let waits = domain.spawn(async move { never.wait().await });
        // A timer that was given up keeps nothing alive.
        let _ = domain.timeout(SECOND, domain.sleep(60 * SECOND)).await;
        waits.await
    });
    let failure = failure.expect_err("a deadlock");
    assert_eq!(
        failure.to_string(),
        "seed 3: deadlock at 2s: nothing is runnable and no timer is set, while main, task-1 wait"
    );
    assert!(matches!(failure, SimFailure::Deadlock { .. }));
}

#[test]
fn the_horizon_ends_a_run_that_would_not_end() {
    // S1.7
    let failure = Sim::try_run(SimOptions::new(3), |sim| async move {
        loop {
            sim.domain().sleep(3600 * SECOND).await;
        }
    });
    let failure: SimFailure = failure
        .map(|never: std::convert::Infallible| never)
        .expect_err("too far");
    assert!(matches!(failure, SimFailure::Horizon { .. }), "{failure}");
}

#[test]
fn labels_do_not_shift_one_another() {
    // S1.9
    let draw = |also: bool| {
        Sim::run(5, move |sim| async move {
            let domain = sim.domain();
            if also {
                domain.rng("other").expect("a label").u64();
            }
            domain.rng("mine").expect("a label").u64()
        })
    };
    assert_eq!(draw(false), draw(true));
}

#[test]
fn a_task_can_be_aborted() {
    Sim::run(0, |sim| async move {
        let task = sim.domain().spawn(std::future::pending::<()>());
        sim.advance(Duration::ZERO).await;
        task.abort();
        assert_eq!(task.await, Err(TaskError::Cancelled));
    });
}

#[test]
fn the_trace_tells_of_spawns_sleeps_and_wakes() {
    // S1.10
    let trace = Sim::run(0, |sim| async move {
        let domain = sim.domain();
        let sleep = domain.sleep(SECOND);
        domain.spawn(sleep);
        sim.note("waits");
        sim.advance(SECOND).await;
        sim.trace()
    });
    let trace: Vec<String> = trace.iter().map(TraceEvent::to_string).collect();
    assert_eq!(
        trace,
        [
            "0.000000000 main spawn task-1",
            "0.000000000 main waits",
            "0.000000000 task-1 sleep until 1",
            "1.000000000 task-1 wake",
        ]
    );
}

/// A worker with some load, from its start to its end.
fn a_day_at_work(seed: u64) -> Vec<TraceEvent> {
    Sim::run(seed, |sim| async move {
        let domain = sim.domain();
        let options = HostOptions::new()
            .namespace("/rooms")
            .idle_timeout(20 * SECOND);
        let builder = PinnedWorker::builder().host_with::<Room>(options);
        let app = TestApp::start(builder.domain(domain.clone()))
            .await
            .expect("it starts");
        let jitter = domain.rng("test").expect("a label");
        let mut clients = Vec::new();
        for number in 0..20 {
            let (sim, client, domain) = (sim.clone(), app.client(), domain.clone());
            let pauses: Vec<f64> = (0..5).map(|_| jitter.uniform(0.0..30.0)).collect();
            clients.push(sim.domain().spawn(async move {
                for pause in pauses {
                    domain.sleep(Duration::from_secs_f64(pause)).await;
                    let path = format!("/rooms/{number}/increment");
                    let count: u64 = client.post(path).send().await.json().await;
                    sim.note(format!("counts {count}"));
                }
            }));
        }
        sim.advance(60 * SECOND).await;
        app.worker().drain(Some(SECOND)).await;
        for client in clients {
            client.abort();
        }
        app.shutdown().await.expect("it stops");
        sim.trace()
    })
}

#[test]
fn one_seed_is_one_trace() {
    // S1.10
    let (one, other) = (a_day_at_work(11), a_day_at_work(11));
    let differs = one.iter().zip(&other).find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(one.len(), other.len());
    assert_ne!(one, a_day_at_work(12));
}

#[test]
fn a_host_evicts_an_idle_instance_in_virtual_time() {
    // S1.14, H8.2
    Sim::run(0, |sim| async move {
        let options = HostOptions::new()
            .namespace("/rooms")
            .idle_timeout(300 * SECOND);
        let builder = PinnedWorker::builder().host_with::<Room>(options);
        let app = TestApp::start(builder.domain(sim.domain()))
            .await
            .expect("it starts");
        app.client().post("/rooms/blue/increment").send().await;
        sim.advance(299 * SECOND).await;
        assert_eq!(app.host::<Room>().len(), 1);
        // At the latest one sweep later.
        sim.advance(6 * SECOND).await;
        assert_eq!(app.host::<Room>().len(), 0);
        app.shutdown().await.expect("it stops");
    });
}

#[test]
fn a_wait_tells_whether_the_event_is_set_at_the_end() {
    // S1.8, H17.2
    Sim::run(0, |sim| async move {
        let (domain, event) = (sim.domain(), Event::new());
        assert!(!domain.wait(&event, SECOND).await);
        assert_eq!(sim.elapsed(), SECOND);
        let setter = {
            let (domain, event) = (domain.clone(), event.clone());
            async move {
                domain.sleep(SECOND).await;
                event.set();
            }
        };
        domain.spawn(setter);
        assert!(domain.wait(&event, 10 * SECOND).await);
        assert_eq!(sim.elapsed(), 2 * SECOND);
        assert!(domain.wait(&event, Duration::ZERO).await);
    });
}

#[test]
fn a_lease_turns_unhealthy_and_ends_at_exactly_its_times() {
    // S1.14
    Sim::run(0, |sim| async move {
        let lease = Lease::new(sim.domain());
        lease
            .configure(LeaseSettings::new().buffer(5 * SECOND))
            .expect("a margin");
        lease.renewed(60 * SECOND, None);
        let tick = Duration::from_nanos(1);
        sim.advance(55 * SECOND - tick).await;
        assert!(lease.healthy());
        sim.advance(tick).await;
        assert!(!lease.healthy());
        assert!(!lease.expired());
        sim.advance(5 * SECOND - tick).await;
        assert!(!lease.expired());
        sim.advance(tick).await;
        assert!(lease.expired());
    });
}

#[test]
fn what_is_left_at_the_end_is_dropped_without_running() {
    // S1.13
    struct Left(Arc<Mutex<Vec<&'static str>>>);
    impl Drop for Left {
        fn drop(&mut self) {
            self.0.lock().push("dropped");
        }
    }
    let seen = Arc::<Mutex<Vec<&'static str>>>::default();
    let left = Left(Arc::clone(&seen));
    Sim::run(0, |sim| async move {
        let domain = sim.domain();
        let sleep = domain.sleep(SECOND);
        domain.spawn(async move {
            sleep.await;
            left.0.lock().push("ran");
        });
        sim.advance(SECOND / 2).await;
    });
    assert_eq!(*seen.lock(), ["dropped"]);
}

#[test]
#[should_panic(expected = "as the test says")]
fn a_panic_of_the_test_is_its_own() {
    Sim::run(0, |_sim| async move { panic!("as the test says") });
}
