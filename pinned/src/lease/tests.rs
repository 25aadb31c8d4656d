//! The lease on a paused clock.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Lease, LeaseSettings, ZeroBuffer};
use crate::domain::{Domain, Event};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A lease that writes down what its hooks are told, and moves its own clock.
struct Bench {
    domain: Domain,
    lease: Lease,
    told: Arc<Mutex<Vec<&'static str>>>,
    start: Instant,
}

impl Bench {
    fn new() -> Self {
        let domain = Domain::real_seeded(0);
        let (lease, told) = (Lease::new(domain.clone()), Arc::<Mutex<Vec<_>>>::default());
        let note = |what| {
            let told = Arc::clone(&told);
            move || told.lock().push(what)
        };
        lease
            .configure(
                LeaseSettings::new()
                    .on_unhealthy(note("unhealthy"))
                    .on_restored(note("restored")),
            )
            .expect("no buffer named");
        let start = domain.monotonic();
        Self {
            domain,
            lease,
            told,
            start,
        }
    }

    /// Moves the clock to `at` seconds after the start, and lets what is due then happen.
    async fn reach(&self, at: u64) {
        self.domain.sleep_until(self.start + secs(at)).await;
        tokio::task::yield_now().await;
    }

    fn told(&self) -> Vec<&'static str> {
        self.told.lock().clone()
    }

    fn deadline(&self) -> Option<u64> {
        self.lease
            .expires_at_monotonic()
            .map(|at| (at - self.start).as_secs())
    }
}

// W7.1
#[tokio::test(start_paused = true)]
async fn without_an_acknowledgement_a_lease_is_healthy_for_ever() {
    let bench = Bench::new();
    bench.reach(1_000_000).await;
    let lease = &bench.lease;
    assert!(lease.healthy() && !lease.expired());
    assert_eq!(
        (
            lease.expires_at(),
            lease.expires_at_monotonic(),
            lease.ttl()
        ),
        (None, None, None)
    );
    assert_eq!((lease.flaps(), bench.told()), (0, vec![]));
}

// W7.2
#[tokio::test(start_paused = true)]
async fn a_term_counts_from_its_anchor_so_that_a_slow_answer_never_lengthens_it() {
    let bench = Bench::new();
    bench.reach(10).await;
    bench.lease.renewed(secs(30), Some(bench.start + secs(4)));
    assert_eq!(bench.deadline(), Some(34));
    assert_eq!(bench.lease.ttl(), Some(secs(30)));
    bench.lease.renewed(secs(20), None);
    assert_eq!(
        bench.deadline(),
        Some(30),
        "without an anchor it counts from now"
    );
    assert_eq!(bench.lease.ttl(), Some(secs(20)));
}

// W7.2
#[tokio::test(start_paused = true)]
async fn an_answer_older_than_its_term_grants_nothing() {
    let bench = Bench::new();
    bench.reach(40).await;
    bench.lease.renewed(secs(30), Some(bench.start));
    assert!(bench.lease.expired() && !bench.lease.healthy());
    assert_eq!(bench.told(), ["unhealthy"]);
}

// W7.3, S1.14
#[tokio::test(start_paused = true)]
async fn sixty_seconds_with_a_buffer_of_five_are_unhealthy_at_fifty_five_and_expired_at_sixty() {
    let bench = Bench::new();
    let lease = &bench.lease;
    lease.renewed(secs(60), None);
    let moment = Duration::from_nanos(1_000_000);
    for (at, healthy, expired) in [(55, false, false), (60, false, true)] {
        bench
            .domain
            .sleep_until(bench.start + secs(at) - moment)
            .await;
        assert_eq!(
            (lease.healthy(), lease.expired()),
            (at == 55, false),
            "just before {at}"
        );
        bench.domain.sleep_until(bench.start + secs(at)).await;
        assert_eq!(
            (lease.healthy(), lease.expired()),
            (healthy, expired),
            "at {at}"
        );
    }
}

// W7.3
#[tokio::test(start_paused = true)]
async fn health_is_computed_before_any_timer_runs() {
    let bench = Bench::new();
    bench.lease.renewed(secs(60), None);
    bench.lease.close();
    bench.reach(55).await;
    assert!(!bench.lease.healthy());
    assert_eq!(bench.told(), [""; 0], "the timer was closed");
}

// W7.4
#[tokio::test(start_paused = true)]
async fn the_edge_is_counted_and_told_once_with_nobody_asking() {
    let bench = Bench::new();
    bench.lease.renewed(secs(30), None);
    bench.reach(24).await;
    assert_eq!((bench.lease.flaps(), bench.told()), (0, vec![]));
    bench.reach(25).await;
    assert_eq!((bench.lease.flaps(), bench.told()), (1, vec!["unhealthy"]));
    bench.reach(300).await;
    assert_eq!((bench.lease.flaps(), bench.told()), (1, vec!["unhealthy"]));
}

// W7.4
#[tokio::test(start_paused = true)]
async fn renewals_in_time_never_flap() {
    let bench = Bench::new();
    for beat in 0..100 {
        bench.reach(beat * 3).await;
        bench.lease.renewed(secs(30), None);
    }
    assert_eq!((bench.lease.flaps(), bench.told()), (0, vec![]));
    bench.reach(99 * 3 + 25).await;
    assert_eq!(bench.lease.flaps(), 1);
}

// W7.5
#[tokio::test(start_paused = true)]
async fn a_renewal_restores_also_after_expiry_and_the_next_edge_counts_again() {
    let bench = Bench::new();
    bench.lease.renewed(secs(30), None);
    bench.reach(26).await;
    bench.lease.renewed(secs(30), None);
    assert!(bench.lease.healthy());
    assert_eq!(bench.told(), ["unhealthy", "restored"]);
    bench.reach(100).await;
    assert!(bench.lease.expired());
    bench.lease.renewed(secs(30), None);
    assert!(bench.lease.healthy() && !bench.lease.expired());
    assert_eq!(
        bench.told(),
        ["unhealthy", "restored", "unhealthy", "restored"]
    );
    assert_eq!(bench.lease.flaps(), 2);
}

// W7.5
#[tokio::test(start_paused = true)]
async fn a_renewal_that_leaves_the_lease_unhealthy_restores_nothing() {
    let bench = Bench::new();
    for beat in 0..5 {
        bench.reach(beat).await;
        bench.lease.renewed(secs(4), None);
    }
    assert_eq!((bench.lease.flaps(), bench.told()), (1, vec!["unhealthy"]));
}

// W7.6
#[tokio::test(start_paused = true)]
async fn hooks_that_fail_or_panic_are_counted_and_change_nothing_else() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _installed = metrics::set_default_local_recorder(&recorder);
    let bench = Bench::new();
    bench
        .lease
        .configure(
            LeaseSettings::new()
                .on_unhealthy(|| -> () { panic!("a hook that panics") })
                .on_restored(|| Err(io::Error::other("a hook that fails"))),
        )
        .expect("no buffer named");
    bench.lease.renewed(secs(30), None);
    assert_eq!(gauge(&snapshotter), Some(1.0));
    bench.reach(25).await;
    assert_eq!(
        (bench.lease.flaps(), failures(&snapshotter, "on_unhealthy")),
        (1, 1)
    );
    bench.lease.renewed(secs(30), None);
    assert!(bench.lease.healthy());
    assert_eq!(failures(&snapshotter, "on_restored"), 1);
    bench.reach(50).await;
    assert_eq!(bench.lease.flaps(), 2, "the timer goes on");
}

// W7.4, W7.5, W15
#[tokio::test(start_paused = true)]
async fn the_gauge_follows_the_edges() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _installed = metrics::set_default_local_recorder(&recorder);
    let bench = Bench::new();
    assert_eq!(gauge(&snapshotter), Some(1.0), "at creation");
    bench.lease.renewed(secs(30), None);
    bench.reach(25).await;
    assert_eq!(gauge(&snapshotter), Some(0.0), "at the edge");
    bench.lease.renewed(secs(30), None);
    assert_eq!(gauge(&snapshotter), Some(1.0), "at the renewal");
}

// W7.7
#[tokio::test(start_paused = true)]
async fn the_buffer_is_five_seconds_unless_set_and_never_zero() {
    let bench = Bench::new();
    assert_eq!(bench.lease.buffer(), secs(5));
    let zero = LeaseSettings::new()
        .buffer(Duration::ZERO)
        .on_unhealthy(|| -> () { panic!("never taken over") });
    assert_eq!(bench.lease.configure(zero), Err(ZeroBuffer));
    assert_eq!(bench.lease.buffer(), secs(5));
    bench.lease.renewed(secs(30), None);
    bench.reach(25).await;
    assert_eq!(bench.told(), ["unhealthy"], "the old hook is still there");
}

// W7.7, H15.2
#[tokio::test(start_paused = true)]
async fn a_new_buffer_moves_the_edge_and_leaves_the_hooks() {
    let bench = Bench::new();
    bench.lease.renewed(secs(30), None);
    bench.reach(1).await;
    bench
        .lease
        .configure(LeaseSettings::new().buffer(secs(20)))
        .expect("not zero");
    bench.reach(9).await;
    assert_eq!(bench.told(), [""; 0]);
    bench.reach(10).await;
    assert_eq!(bench.told(), ["unhealthy"], "earlier than it was");
    bench
        .lease
        .configure(LeaseSettings::new().buffer(secs(1)))
        .expect("not zero");
    assert!(bench.lease.healthy(), "computed");
    bench.reach(29).await;
    assert_eq!(
        (bench.lease.flaps(), bench.told()),
        (1, vec!["unhealthy"]),
        "not re-armed while unhealthy"
    );
}

// W7.7
#[tokio::test(start_paused = true)]
async fn a_buffer_as_long_as_the_term_is_unhealthy_from_the_start() {
    let bench = Bench::new();
    bench
        .lease
        .configure(LeaseSettings::new().buffer(secs(30)))
        .expect("not zero");
    bench.lease.renewed(secs(30), None);
    assert!(!bench.lease.healthy() && !bench.lease.expired());
    assert_eq!((bench.lease.flaps(), bench.told()), (1, vec!["unhealthy"]));
}

// W7.8
#[tokio::test(start_paused = true)]
async fn a_cap_counts_from_the_next_renewal_on_and_can_be_lifted() {
    let bench = Bench::new();
    bench.lease.renewed(secs(30), None);
    bench.lease.cap(Some(bench.start + secs(20)));
    assert_eq!(bench.deadline(), Some(30), "not before a renewal");
    bench.reach(3).await;
    bench.lease.renewed(secs(30), None);
    assert_eq!(bench.deadline(), Some(20));
    assert_eq!(
        bench.lease.ttl(),
        Some(secs(30)),
        "the term as it was granted"
    );
    bench.reach(15).await;
    assert_eq!(bench.told(), ["unhealthy"], "the edge moves with the cap");
    bench.lease.cap(None);
    assert_eq!(bench.deadline(), Some(20));
    bench.lease.renewed(secs(30), None);
    assert_eq!(bench.deadline(), Some(45));
    assert_eq!(bench.told(), ["unhealthy", "restored"]);
}

// W7.9
#[tokio::test(start_paused = true)]
async fn the_wall_clock_expiry_is_the_wall_clock_plus_what_remains() {
    let bench = Bench::new();
    bench.lease.renewed(secs(30), None);
    let slack = secs(2);
    for (at, remaining) in [(0, 30), (10, 20)] {
        bench.reach(at).await;
        let expires = bench.lease.expires_at().expect("acknowledged");
        let left = expires
            .duration_since(bench.domain.now())
            .expect("still to come");
        assert!(
            left <= secs(remaining) && left + slack > secs(remaining),
            "{left:?} of {remaining} s"
        );
    }
    bench.reach(90).await;
    assert!(
        bench.lease.expires_at().expect("acknowledged") + secs(60) <= bench.domain.now() + slack,
        "in the past"
    );
}

#[tokio::test(start_paused = true)]
async fn an_endless_term_is_a_term() {
    let bench = Bench::new();
    bench.lease.renewed(Duration::MAX, None);
    bench.reach(1_000_000).await;
    assert!(bench.lease.healthy() && bench.lease.expires_at().is_some());
}

// W1.5
#[tokio::test(start_paused = true)]
async fn a_closed_lease_is_watched_again_from_its_next_renewal() {
    let bench = Bench::new();
    bench.lease.renewed(secs(30), None);
    bench.lease.close();
    bench.reach(26).await;
    assert_eq!(bench.told(), [""; 0]);
    bench.lease.renewed(secs(30), None);
    bench.reach(51).await;
    assert_eq!(bench.told(), ["unhealthy"]);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_lease_ends_its_timer() {
    let bench = Bench::new();
    bench.lease.renewed(secs(30), None);
    let tasks = tokio::runtime::Handle::current().metrics();
    tokio::task::yield_now().await;
    assert_eq!(tasks.num_alive_tasks(), 1);
    drop(bench.lease);
    tokio::task::yield_now().await;
    assert_eq!(tasks.num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_use_the_lease_it_hangs_on() {
    let bench = Bench::new();
    let lease = bench.lease.clone();
    let settings = LeaseSettings::new().on_unhealthy(move || lease.renewed(secs(30), None));
    bench.lease.configure(settings).expect("no buffer named");
    bench.lease.renewed(secs(30), None);
    bench.reach(25).await;
    assert!(bench.lease.healthy());
    assert_eq!((bench.lease.flaps(), bench.told()), (1, vec!["restored"]));
}

/// Hooks alternate and end on the true health, whichever threads pass the edges.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hooks_hear_of_the_edges_in_order_on_many_threads() {
    let domain = Domain::real();
    let lease = Lease::new(domain.clone());
    let (seen, broken) = (Arc::new(AtomicU64::new(0)), Event::new());
    // A panic in a hook would be caught by the lease, so a broken order is written down instead.
    let step = |odd: u64| {
        let (seen, broken) = (Arc::clone(&seen), broken.clone());
        move || {
            if seen.fetch_add(1, Ordering::SeqCst) % 2 != odd {
                broken.set();
            }
        }
    };
    lease
        .configure(
            LeaseSettings::new()
                .on_unhealthy(step(0))
                .on_restored(step(1)),
        )
        .expect("no buffer named");
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let lease = lease.clone();
            domain.spawn(async move {
                for turn in 0..500 {
                    lease.renewed(secs(if (turn + thread) % 2 == 0 { 1 } else { 60 }), None);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.await, Ok(()));
    }
    lease.renewed(secs(60), None);
    assert!(lease.healthy());
    // The timer may still be the one who tells.
    let told = async {
        while seen.load(Ordering::SeqCst) % 2 != 0 {
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(domain.timeout(secs(30), told).await, Ok(()));
    assert!(!broken.is_set());
    assert!(lease.flaps() > 0);
}

fn gauge(snapshotter: &Snapshotter) -> Option<f64> {
    read(snapshotter, "pinned_lease_healthy", None).map(|value| match value {
        DebugValue::Gauge(value) => value.into_inner(),
        other => panic!("not a gauge: {other:?}"),
    })
}

fn failures(snapshotter: &Snapshotter, hook: &str) -> u64 {
    match read(
        snapshotter,
        "pinned_callback_failures_total",
        Some(("hook", hook)),
    ) {
        Some(DebugValue::Counter(count)) => count,
        other => panic!("not a counter: {other:?}"),
    }
}

fn read(snapshotter: &Snapshotter, name: &str, label: Option<(&str, &str)>) -> Option<DebugValue> {
    snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .find_map(|(key, _, _, value)| {
            let mut labels = key.key().labels().map(|label| (label.key(), label.value()));
            let fits = key.key().name() == name
                && label.is_none_or(|label| labels.any(|found| found == label));
            fits.then_some(value)
        })
}
