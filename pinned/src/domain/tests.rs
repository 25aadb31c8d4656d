//! The domain, real and custom: every test of behaviour runs against both.

#![allow(
    clippy::disallowed_methods,
    reason = "a domain is made here out of what it stands for"
)]

use std::future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{
    Domain, DomainBackend, Elapsed, EmptyLabel, Event, Rng, RngStreams, SpawnedTask, TaskError,
};

/// The smallest simulation: tokio's (paused) clock, a fixed wall epoch, predictable tokens.
struct Simulated {
    start: Instant,
    streams: RngStreams,
}

struct Task(tokio::task::JoinHandle<()>);

impl SpawnedTask for Task {
    fn abort(&self) {
        self.0.abort();
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl DomainBackend for Simulated {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + self.start.elapsed()
    }

    fn monotonic(&self) -> Instant {
        Instant::now()
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep_until(at))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Box<dyn SpawnedTask> {
        Box::new(Task(tokio::spawn(task)))
    }

    fn rng(&self, label: &str) -> Rng {
        self.streams
            .get(label)
            .expect("the domain refuses empty labels")
    }

    fn fill_token(&self, token: &mut [u8]) {
        token.fill(0xa5);
    }
}

fn simulated() -> Domain {
    Domain::custom(Arc::new(Simulated {
        start: Instant::now(),
        streams: RngStreams::seeded(0),
    }))
}

fn both() -> [Domain; 2] {
    [Domain::real(), simulated()]
}

const SECOND: Duration = Duration::from_secs(1);

// H17.2
#[tokio::test(start_paused = true)]
async fn a_sleep_ends_exactly_at_its_deadline() {
    for domain in both() {
        let start = domain.monotonic();
        domain.sleep(3 * SECOND).await;
        assert_eq!(domain.monotonic() - start, 3 * SECOND);
        domain.sleep_until(start + 5 * SECOND).await;
        assert_eq!(domain.monotonic() - start, 5 * SECOND);
    }
}

// H17.2
#[tokio::test(start_paused = true)]
async fn a_sleep_counts_from_the_call_and_may_be_endless() {
    for domain in both() {
        let start = domain.monotonic();
        let sleep = domain.sleep(2 * SECOND);
        domain.sleep(SECOND).await;
        sleep.await;
        assert_eq!(domain.monotonic() - start, 2 * SECOND);
        assert_eq!(
            domain.timeout(SECOND, domain.sleep(Duration::MAX)).await,
            Err(Elapsed)
        );
    }
}

// H17.2
#[tokio::test(start_paused = true)]
async fn a_timeout_gives_the_output_or_the_end_of_the_time() {
    for domain in both() {
        assert_eq!(
            domain.timeout(Duration::ZERO, future::ready(1)).await,
            Ok(1)
        );
        let start = domain.monotonic();
        assert_eq!(
            domain.timeout(SECOND, future::pending::<()>()).await,
            Err(Elapsed)
        );
        assert_eq!(domain.monotonic() - start, SECOND);
    }
}

// S1.8, H17.2
#[tokio::test(start_paused = true)]
async fn a_wait_tells_whether_the_event_is_set_at_the_end() {
    for domain in both() {
        let event = Event::new();
        assert!(
            !domain.wait(&event, Duration::ZERO).await,
            "one look, not set"
        );
        assert!(!domain.wait(&event, SECOND).await, "time runs out");

        let setter = domain.spawn({
            let (domain, event) = (domain.clone(), event.clone());
            async move {
                domain.sleep(SECOND).await;
                event.set();
            }
        });
        let start = domain.monotonic();
        assert!(domain.wait(&event, 10 * SECOND).await, "set in time");
        assert_eq!(domain.monotonic() - start, SECOND);
        assert_eq!(setter.await, Ok(()));
        assert!(domain.wait(&event, Duration::ZERO).await, "one look, set");
    }
}

// S1.8
#[tokio::test(start_paused = true)]
async fn an_event_set_and_cleared_at_once_wakes_its_waiters_and_reads_as_not_set() {
    for domain in both() {
        let event = Event::new();
        let waiter = domain.spawn({
            let (domain, event) = (domain.clone(), event.clone());
            async move {
                let start = domain.monotonic();
                (
                    domain.wait(&event, 10 * SECOND).await,
                    domain.monotonic() - start,
                )
            }
        });
        domain.sleep(SECOND).await;
        event.set();
        event.clear();
        assert_eq!(waiter.await, Ok((false, SECOND)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_between_threads() {
    let domain = Domain::real();
    for _ in 0..1_000 {
        let event = Event::new();
        let waiter = domain.spawn({
            let event = event.clone();
            async move { event.wait().await }
        });
        event.set();
        assert_eq!(domain.timeout(30 * SECOND, waiter).await, Ok(Ok(())));
    }
}

// H17.2
#[tokio::test(start_paused = true)]
async fn a_task_ends_with_its_value_a_cancellation_or_a_panic() {
    for domain in both() {
        assert_eq!(domain.spawn(async { 5 }).await, Ok(5));

        let stuck = domain.spawn(future::pending::<()>());
        assert!(!stuck.is_finished());
        stuck.abort();
        let error = stuck.await.expect_err("aborted");
        assert!(error.is_cancelled());

        let broken = domain.spawn(async { panic!("no luck with {}", 13) });
        let error: Result<(), _> = broken.await;
        assert_eq!(
            error,
            Err(TaskError::Panicked {
                message: "no luck with 13".to_owned()
            })
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_on_when_its_handle_is_dropped() {
    for domain in both() {
        let done = Arc::new(Notify::new());
        drop(domain.spawn({
            let (domain, done) = (domain.clone(), Arc::clone(&done));
            async move {
                domain.sleep(SECOND).await;
                done.notify_one();
            }
        }));
        done.notified().await;
    }
}

// H17.3, S1.2
#[tokio::test]
async fn a_label_names_one_stream_that_goes_on_and_no_other_label_shifts_it() {
    let draws = |domain: &Domain, disturb: bool| {
        (0..8)
            .map(|_| {
                if disturb {
                    domain.rng("other").expect("a label").u64();
                }
                domain.rng("this").expect("a label").u64()
            })
            .collect::<Vec<_>>()
    };
    let expected = draws(&Domain::real_seeded(7), false);
    assert!(
        expected.windows(2).all(|pair| pair[0] != pair[1]),
        "asking again goes on"
    );
    assert_eq!(draws(&Domain::real_seeded(7), true), expected);
    assert_ne!(draws(&Domain::real_seeded(8), false), expected);
    assert_ne!(
        draws(&Domain::real(), false),
        draws(&Domain::real(), false),
        "a fleet draws apart"
    );

    let domain = Domain::real_seeded(7);
    let clone = domain.clone();
    assert_eq!(domain.rng("this").expect("a label").u64(), expected[0]);
    assert_eq!(
        clone.rng("this").expect("a label").u64(),
        expected[1],
        "clones share the streams"
    );
}

// H17.3, S1.2
#[tokio::test]
async fn an_empty_label_is_refused() {
    for domain in both() {
        assert_eq!(domain.rng("").map(|_| ()), Err(EmptyLabel));
    }
}

#[test]
fn draws_stay_in_their_range() {
    let rng = Rng::from_seed([1; 32]);
    for _ in 0..1_000 {
        assert!((0.5..1.5).contains(&rng.uniform(0.5..1.5)));
        assert!(rng.below(3) < 3);
    }
    assert_eq!(rng.uniform(2.0..2.0), 2.0);
}

// H17.2, S1.2
#[tokio::test]
async fn a_token_has_two_hex_digits_for_each_byte() {
    let domain = Domain::real_seeded(0);
    let token = domain.token_hex(16);
    assert_eq!(token.len(), 32);
    assert!(
        token
            .bytes()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    );
    assert_ne!(
        Domain::real_seeded(0).token_hex(16),
        token,
        "no seed repeats a token"
    );
    assert_eq!(domain.token_hex(0), "");
    assert_eq!(simulated().token_hex(2), "a5a5");
}

#[test]
fn no_seed_shows_in_debug() {
    let domain = Domain::real_seeded(424_242);
    let text = format!(
        "{domain:?} {:?} {:?}",
        domain.rng("x"),
        RngStreams::seeded(424_242)
    );
    assert!(!text.contains("424242"), "{text}");
}

// S1.3
#[tokio::test(start_paused = true)]
async fn a_custom_domain_keeps_its_own_wall_clock() {
    let domain = simulated();
    let start = domain.now();
    domain.sleep(60 * SECOND).await;
    assert_eq!(domain.now().duration_since(start).ok(), Some(60 * SECOND));
}
