//! A domain whose time runs fast, so that a deadline of 30 s is no wait of 30 s.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use pinned::domain::{Domain, DomainBackend, Rng, RngStreams, SpawnedTask};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Seconds of the domain in one of the clock on the wall.
const PACE: u32 = 20;

struct Fast {
    start: Instant,
    streams: RngStreams,
}

struct Task(JoinHandle<()>);

impl SpawnedTask for Task {
    fn abort(&self) {
        self.0.abort();
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl DomainBackend for Fast {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Instant {
        self.start + self.start.elapsed() * PACE
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let left = at.saturating_duration_since(self.monotonic()) / PACE;
        Box::pin(tokio::time::sleep(left))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Box<dyn SpawnedTask> {
        Box::new(Task(tokio::spawn(task)))
    }

    fn rng(&self, label: &str) -> Rng {
        self.streams.get(label).expect("a label")
    }

    fn fill_token(&self, token: &mut [u8]) {
        token.fill(0);
    }
}

pub(crate) fn fast_domain() -> Domain {
    Domain::custom(Arc::new(Fast {
        start: Instant::now(),
        streams: RngStreams::seeded(0),
    }))
}
