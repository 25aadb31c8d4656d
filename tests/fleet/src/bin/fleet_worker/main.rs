//! A worker for tests of fleets: admits items to a durable queue and writes down whatever its instances do, and has instances
//! that call each other.
//!
//! It reads the environment of every worker, and `ACTIVITY_LOG`, the file that it appends to. Its rows say who wrote them.
//! Besides `/ledgers` it serves `/links`, `/guests`, and `/brief` with a short time for instances to which nobody is attached.

mod activity;
mod control;
mod guest;
mod ledger;
mod link;
mod shadow;
mod signed;

use std::sync::Arc;
use std::time::Duration;

use pinned::durability::StateStore;
use pinned::{HostOptions, PinnedWorker};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let activity = activity::Activity::from_environment()?;
    let dsn = std::env::var("PINNED_STORE").map_err(|_| "PINNED_STORE names a PostgreSQL")?;
    let store: Arc<dyn StateStore> = Arc::new(signed::Signed::open(&dsn)?);
    let mut worker = PinnedWorker::builder()
        .host::<ledger::Ledger>("/ledgers")
        .host::<link::Link>("/links")
        .host::<guest::Guest>("/guests")
        .host_with::<guest::Guest>(brief())
        .self_probe(control::self_probe())
        .merge(control::router())
        .environment()
        .shared_store(Arc::clone(&store))
        .state(shadow::Store(store))
        .state(activity.clone());
    // Shorter than in production, so that faults are over within a test.
    if let Some(interval) = milliseconds("HEARTBEAT_MS")? {
        worker = worker.heartbeat_interval(interval);
    }
    if let Some(buffer) = milliseconds("LEASE_BUFFER_MS")? {
        worker = worker.lease_buffer(buffer);
    }
    if let Some(deadline) = milliseconds("DRAIN_MS")? {
        worker = worker.drain_deadline(deadline);
    }
    let worker = worker.build()?;
    control::set_worker(&worker);
    activity.watch(worker.lease().clone());
    worker.serve().await?;
    Ok(())
}

fn brief() -> HostOptions {
    HostOptions::new()
        .namespace("/brief")
        .detached_timeout(Duration::from_secs(1))
}

fn milliseconds(name: &str) -> Result<Option<Duration>, Box<dyn std::error::Error>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(Duration::from_millis(text.parse()?))),
        Err(_) => Ok(None),
    }
}
