//! The domains that the tests run against.

#![allow(
    clippy::disallowed_methods,
    reason = "a domain is made here out of what it stands for"
)]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use pinned_domain::{Domain, DomainBackend, Rng, RngStreams, SpawnedTask};
use tokio::time::Instant;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

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

pub(crate) fn simulated() -> Domain {
    Domain::custom(Arc::new(Simulated {
        start: Instant::now(),
        streams: RngStreams::seeded(0),
    }))
}

pub(crate) fn both() -> [Domain; 2] {
    [Domain::real(), simulated()]
}
