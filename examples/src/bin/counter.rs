//! A counter per id.
//!
//! ```sh
//! cargo run --release -p examples --bin counter
//!
//! curl -X POST localhost:8000/counters/alice/increment
//! curl localhost:8000/counters/alice
//! ```

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
    examples::show_warnings();
    PinnedWorker::from_registry()?.serve().await
}

#[cfg(test)]
mod tests {
    use super::Counter;
    use pinned_testing::pinned_app;

    #[tokio::test]
    async fn each_id_counts_for_itself() -> pinned::Result<()> {
        let app = pinned_app::<Counter>().await?;
        let client = app.client();
        for expected in 1..=2 {
            let answer = client.post("/counters/alice/increment").send().await;
            assert_eq!(answer.json::<u64>().await, expected);
        }
        assert_eq!(
            client
                .get("/counters/alice")
                .send()
                .await
                .json::<u64>()
                .await,
            2
        );
        assert_eq!(
            client.get("/counters/bob").send().await.json::<u64>().await,
            0
        );
        app.shutdown().await
    }

    #[tokio::test]
    async fn no_increment_is_lost_when_many_come_at_once() -> pinned::Result<()> {
        let app = pinned_app::<Counter>().await?;
        let client = app.client();
        let increments = (0..100).map(|_| client.post("/counters/alice/increment").send());
        futures_util::future::join_all(increments).await;
        assert_eq!(
            client
                .get("/counters/alice")
                .send()
                .await
                .json::<u64>()
                .await,
            100
        );
        app.shutdown().await
    }
}
