//! The counter on pinned.

use std::future::pending;
use std::path::Path;
use std::time::Duration;

use pinned::durability::SqliteStore;
use pinned::{Durable, HostOptions, Json, Persistent, PinnedWorker, pinned_api, route};
use tokio::net::TcpListener;

use crate::Result;

/// One count per id.
#[derive(Default)]
pub struct Counter {
    count: u64,
}

#[pinned_api]
impl Counter {
    /// Adds one, as an ordinary method under an exclusive turn.
    pub async fn add_one(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Adds one.
    #[route::post("/increment")]
    pub async fn increment(&mut self) -> Json<u64> {
        Json(self.add_one().await)
    }

    /// Holds the exclusive turn for ever.
    #[route::post("/stall")]
    pub async fn stall(&mut self) {
        pending::<()>().await;
    }
}

/// One durable count per id.
#[derive(Durable)]
pub struct DurableCounter {
    count: Persistent<u64>,
}

#[pinned_api]
impl DurableCounter {
    /// Adds one, and answers once the new count is durable.
    #[route::post("/increment", durable)]
    pub async fn increment(&mut self) -> Json<u64> {
        self.count.update(|count| *count += 1);
        Json(*self.count)
    }
}

/// The store of [`serve_durable`], within its folder.
pub const DURABLE_FILE: &str = "counters.db";

/// Room for a million live instances that nothing evicts during a bench, and for bursts of activations.
pub fn options() -> HostOptions {
    HostOptions::new()
        .namespace("/counters")
        .max_instances(2_000_000)
        .max_concurrent_activations(64)
        .idle_timeout(Duration::from_secs(24 * 60 * 60))
}

fn worker() -> Result<PinnedWorker> {
    Ok(PinnedWorker::builder()
        .host_with::<Counter>(options())
        .build()?)
}

/// Serves through `PinnedWorker::serve`.
///
/// # Errors
/// As there.
pub async fn serve(listener: TcpListener) -> Result<()> {
    Ok(worker()?.serve_on(listener).await?)
}

/// Serves the durable counter through `PinnedWorker::serve`, on a SQLite store in `folder`.
///
/// # Errors
/// As there, and when the store cannot be opened.
pub async fn serve_durable(listener: TcpListener, folder: &Path) -> Result<()> {
    let worker = PinnedWorker::builder()
        .host_with::<DurableCounter>(options())
        .store(SqliteStore::open(folder.join(DURABLE_FILE))?)
        .build()?;
    Ok(worker.serve_on(listener).await?)
}

/// Serves through `PinnedWorker::into_router` and `axum::serve`, as the baseline does.
///
/// # Errors
/// When the lifespan does not start or the listener fails.
pub async fn serve_router(listener: TcpListener) -> Result<()> {
    let worker = worker()?;
    let running = worker.run_lifespan().await?;
    axum::serve(listener, worker.into_router()).await?;
    Ok(running.shutdown().await?)
}
