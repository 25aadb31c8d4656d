//! The worker: counters that outlive their process.

use pinned::{Durable, Json, Persistent, PinnedWorker, pinned_api, route};
use serde::Serialize;

/// One counter; the count is on disk before it is told.
#[derive(Durable)]
struct Counter {
    count: Persistent<u64>,
}

#[derive(Serialize)]
struct Count {
    count: u64,
    /// The process that answers.
    worker: u32,
}

#[pinned_api("/counters")]
impl Counter {
    #[route::post("/increment", durable)]
    async fn increment(&mut self) -> Json<Count> {
        self.count.update(|count| *count += 1);
        Json(self.told())
    }

    #[route::get("/")]
    async fn read(&self) -> Json<Count> {
        Json(self.told())
    }
}

impl Counter {
    fn told(&self) -> Count {
        Count {
            count: *self.count,
            worker: std::process::id(),
        }
    }
}

/// As any worker: `PINBOARD_URL`, `PINBOARD_TOKEN`, `ADVERTISE_URL` and `PORT` are in the environment.
pub(crate) async fn serve() -> pinned::Result<()> {
    PinnedWorker::from_registry()?.serve().await
}
