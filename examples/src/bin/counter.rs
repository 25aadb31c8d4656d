//! A counter per id: `POST /counters/<id>/increment`, `GET /counters/<id>`.

use pinned::{Json, PinnedWorker, pinned_api, route};

#[derive(Default)]
struct Counter {
    count: u64,
}

#[pinned_api("/counters")]
impl Counter {
    #[route::post("/increment")]
    async fn increment(&mut self) -> Json<u64> {
        self.count += 1;
        Json(self.count)
    }

    #[route::get("/")]
    async fn read(&self) -> Json<u64> {
        Json(self.count)
    }
}

#[tokio::main]
async fn main() -> pinned::Result<()> {
    PinnedWorker::from_registry()?.serve().await
}
