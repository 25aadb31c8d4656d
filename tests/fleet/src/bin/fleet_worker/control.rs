//! What a test tells this very worker, past pinboard: to drain, and to break in ways that its self-probe must notice.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinned::axum::Router;
use pinned::axum::extract::Path;
use pinned::axum::routing::post;
use pinned::domain::Domain;
use pinned::{PinnedWorker, SelfProbe};

static WORKER: OnceLock<PinnedWorker> = OnceLock::new();
static HANGS: AtomicBool = AtomicBool::new(false);

/// More than the runtime has threads.
const THREADS: usize = 64;

pub(crate) fn set_worker(worker: &PinnedWorker) {
    // There is one in this process.
    let _ = WORKER.set(worker.clone());
}

/// Stands for a router that hangs: it is asked through the self-probe, as a program's own router would be.
pub(crate) fn self_probe() -> SelfProbe {
    SelfProbe::new().also(|| async {
        let domain = Domain::real();
        while HANGS.load(Ordering::Relaxed) {
            domain.sleep(Duration::from_millis(20)).await;
        }
    })
}

pub(crate) fn router() -> Router {
    Router::new()
        .route("/control/drain/{ms}", post(drain))
        .route("/control/revoke", post(revoke))
        .route(
            "/control/hang",
            post(|| async { HANGS.store(true, Ordering::Relaxed) }),
        )
        .route(
            "/control/answer",
            post(|| async { HANGS.store(false, Ordering::Relaxed) }),
        )
        .route("/control/stall/{ms}", post(stall))
}

/// `PinnedWorker::drain`, as a program would call it.
async fn drain(Path(ms): Path<u64>) {
    if let Some(worker) = WORKER.get().cloned() {
        let domain = worker.domain().clone();
        domain.spawn(async move { worker.drain(Some(Duration::from_millis(ms))).await });
    }
}

async fn revoke() {
    if let Some(worker) = WORKER.get() {
        worker.revoke_drain();
    }
}

/// Blocks every thread of the runtime.
async fn stall(Path(ms): Path<u64>) {
    let domain = Domain::real();
    for _ in 0..THREADS {
        domain.spawn(async move { block(Duration::from_millis(ms)) });
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "what a worker must notice of itself"
)]
fn block(time: Duration) {
    static BEGUN: OnceLock<std::time::Instant> = OnceLock::new();
    // All of them until the same moment, however many threads there are.
    let begun = *BEGUN.get_or_init(std::time::Instant::now);
    std::thread::sleep(time.saturating_sub(begun.elapsed()));
}
