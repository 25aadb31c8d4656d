#![allow(clippy::disallowed_methods, reason = "tests move the paused clock")]

use std::time::Duration;

use pinned::durability::MemoryStore;
use pinned::{PinnedWorker, Result};
use pinned_testing::TestApp;
use serde_json::{Value, json};

async fn start(store: MemoryStore) -> Result<TestApp> {
    TestApp::start(PinnedWorker::builder().hosts_from_registry().store(store)).await
}

async fn progress(app: &TestApp) -> Value {
    app.client().get("/lanes/a").send().await.json().await
}

#[tokio::test(start_paused = true)]
async fn what_is_admitted_runs_once_and_in_order() -> Result<()> {
    let app = start(MemoryStore::new()).await?;
    for id in [json!("first"), json!(2)] {
        let answer = app
            .client()
            .post("/lanes/a/enqueue")
            .json(&json!({ "id": id }))
            .send()
            .await;
        assert_eq!(answer.json::<Value>().await, json!({ "admitted": id }));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        progress(&app).await,
        json!({ "executed": { "first": 1, "2": 1 }, "queued": 0 })
    );
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn a_held_item_runs_as_attempt_2_after_a_crash_and_without_any_request() -> Result<()> {
    let store = MemoryStore::new();
    let app = start(store.clone()).await?;
    let held = json!({ "id": "held", "hold": true });
    let enqueue = app.client().post("/lanes/a/enqueue").json(&held).send();
    assert_eq!(enqueue.await.status(), 200);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(progress(&app).await, json!({ "executed": {}, "queued": 1 }));
    // Nothing is closed in order.
    drop(app);
    let app = start(store).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        progress(&app).await,
        json!({ "executed": { "held": 2 }, "queued": 0 })
    );
    app.shutdown().await
}
