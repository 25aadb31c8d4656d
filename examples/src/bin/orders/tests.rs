#![allow(clippy::disallowed_methods, reason = "tests move the paused clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinned::durability::MemoryStore;
use pinned::{BoxError, PinnedWorker, Result};
use pinned_testing::TestApp;
use serde_json::{Value, json};

use crate::order::Charge;
use crate::payments::{Answer, Gateway, Payments};

/// Fails as often as it is told to.
struct Flaky {
    failures: AtomicU64,
    calls: AtomicU64,
}

impl Flaky {
    fn new(failures: u64) -> Arc<Self> {
        Arc::new(Self {
            failures: AtomicU64::new(failures),
            calls: AtomicU64::new(0),
        })
    }
}

impl Payments for Flaky {
    fn charge(&self, charge: Charge) -> BoxFuture<'static, std::result::Result<Answer, BoxError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let left = self.failures.load(Ordering::Relaxed);
        self.failures
            .store(left.saturating_sub(1), Ordering::Relaxed);
        Box::pin(async move {
            match left {
                0 => Ok(Answer::Taken(format!("for {}", charge.order))),
                _ => Err("told to fail".into()),
            }
        })
    }
}

async fn start(store: &MemoryStore, payments: &Arc<Flaky>) -> Result<TestApp> {
    let gateway: Gateway = payments.clone();
    let worker = PinnedWorker::builder().hosts_from_registry();
    TestApp::start(worker.state(gateway).store(store.clone())).await
}

async fn order(app: &TestApp, id: &str, count: u32) -> (u16, Value) {
    let order = json!({ "id": id, "article": "tea", "count": count, "price": 300 });
    let answer = app
        .client()
        .post("/shops/corner/orders")
        .json(&order)
        .send()
        .await;
    (answer.status().as_u16(), answer.json().await)
}

async fn get(app: &TestApp, path: &str) -> Value {
    app.client().get(path).send().await.json().await
}

#[tokio::test(start_paused = true)]
async fn an_order_is_paid_although_the_service_fails() -> Result<()> {
    let (store, payments) = (MemoryStore::new(), Flaky::new(3));
    let app = start(&store, &payments).await?;
    let restocked = app
        .client()
        .put("/shops/corner/stock/tea")
        .json(&json!(5))
        .send()
        .await;
    assert_eq!(restocked.json::<u32>().await, 5);
    assert_eq!(order(&app, "one", 2).await, (200, json!("placed")));
    assert_eq!(order(&app, "two", 9).await.0, 409);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        get(&app, "/shops/corner/orders/one").await,
        json!({ "paid": { "receipt": "for one" } })
    );
    // Placed again, it is the same order.
    assert_eq!(
        order(&app, "one", 2).await.1,
        json!({ "paid": { "receipt": "for one" } })
    );
    assert_eq!(
        get(&app, "/shops/corner").await,
        json!({ "stock": { "tea": 3 }, "takings": 600 })
    );
    assert_eq!(payments.calls.load(Ordering::Relaxed), 4);
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_never_paid_gives_back_what_it_had_reserved() -> Result<()> {
    let (store, payments) = (MemoryStore::new(), Flaky::new(100));
    let app = start(&store, &payments).await?;
    app.client()
        .put("/shops/corner/stock/tea")
        .json(&json!(5))
        .send()
        .await;
    order(&app, "one", 2).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(
        get(&app, "/shops/corner/orders/one").await,
        json!({ "declined": { "reason": "told to fail" } })
    );
    assert_eq!(
        get(&app, "/shops/corner").await,
        json!({ "stock": { "tea": 5 }, "takings": 0 })
    );
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_order_goes_on_by_itself_and_the_books_are_right() -> Result<()> {
    let (store, payments) = (MemoryStore::new(), Flaky::new(3));
    let app = start(&store, &payments).await?;
    app.client()
        .put("/shops/corner/stock/tea")
        .json(&json!(5))
        .send()
        .await;
    order(&app, "one", 2).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    drop(app);
    let app = start(&store, &payments).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        get(&app, "/shops/corner").await,
        json!({ "stock": { "tea": 3 }, "takings": 600 })
    );
    app.shutdown().await
}
