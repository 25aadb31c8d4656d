//! Wall clocks that jump (`cases.md`: no lease moves).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use pinned::domain::{Domain, DomainBackend, Rng, RngStreams, SpawnedTask};
use tokio::time::Instant;

use super::{HEARTBEAT, Script, attested, touch};
use crate::app::{App, pass};
use crate::scene::{Scene, quick};

/// A world whose wall clock is set by hand; its monotonic clock is tokio's.
struct World {
    start: Instant,
    /// Seconds that the wall clock is ahead.
    ahead: Arc<AtomicI64>,
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

#[allow(
    clippy::disallowed_methods,
    reason = "this is what stands behind the methods that are allowed"
)]
impl DomainBackend for World {
    fn now(&self) -> SystemTime {
        let epoch = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let now = epoch + self.start.elapsed();
        let ahead = self.ahead.load(Ordering::Relaxed);
        let jump = Duration::from_secs(ahead.unsigned_abs());
        if ahead < 0 { now - jump } else { now + jump }
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
        self.streams.get(label).expect("a label")
    }

    fn fill_token(&self, token: &mut [u8]) {
        let rng = self.rng("tokens");
        for byte in token {
            *byte = rng.u64() as u8;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_jumps_by_an_hour_either_way_moves_no_lease() {
    // W7.2, W7.3, W4.2, and `cases.md`: "a wall clock that jumps by an hour either way: no lease moves"
    let ahead = Arc::new(AtomicI64::new(0));
    let world = World {
        start: Domain::real().monotonic(),
        ahead: Arc::clone(&ahead),
        streams: RngStreams::seeded(7),
    };
    let script = Script::default();
    let builder = script.builder(&Scene::default(), quick());
    let app = App::start(builder.domain(Domain::custom(Arc::new(world)))).await;
    pass(1).await;
    touch(&app, "a", "session-1", 1).await;
    for jump in [3_600, -3_600, 0] {
        let before = app.worker.lease().expires_at_monotonic();
        ahead.store(jump, Ordering::Relaxed);
        assert_eq!(app.worker.lease().expires_at_monotonic(), before);
        assert!(app.worker.is_ready(), "{jump}");
        let beats = script.count(HEARTBEAT);
        pass(9_000).await;
        assert_eq!(script.count(HEARTBEAT), beats + 3, "{jump}");
        assert!(app.worker.lease().healthy(), "{jump}");
        touch(&app, "a", "session-1", 1).await;
    }
    // When acks stop, the term ends where it would have, whatever the wall clock shows.
    for _ in 0..6 {
        script.break_off(HEARTBEAT);
    }
    let left = app.worker.lease().expires_at_monotonic().expect("a lease")
        - app.worker.domain().monotonic();
    ahead.store(-3_600, Ordering::Relaxed);
    let mut left = u64::try_from(left.as_millis()).expect("short");
    while left > 50 {
        let step = left.min(2_050) - 50;
        pass(step).await;
        left -= step;
        // Never idle for long.
        touch(&app, "a", "session-1", 1).await;
    }
    pass(100).await;
    let call = app.get("/actors/a").epoch(1);
    attested(&app, call, "session-1")
        .send()
        .await
        .assert_refused("lease expired; not serving");
    assert!(!app.worker.is_ready());
    assert_eq!(script.count("/registry/register"), 1);
}
