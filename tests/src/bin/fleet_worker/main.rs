//! A worker for tests of fleets: admits items to a durable queue and writes down whatever its instances do, and has instances
//! that call each other.
//!
//! It reads the environment of every worker, and `ACTIVITY_LOG`, the file that it appends to.

mod activity;
mod ledger;
mod link;

use pinned::PinnedWorker;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let activity = activity::Activity::from_environment()?;
    let mut worker = PinnedWorker::builder()
        .host::<ledger::Ledger>("/ledgers")
        .host::<link::Link>("/links")
        .environment()
        .state(activity);
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
    worker.build()?.serve().await?;
    Ok(())
}

fn milliseconds(name: &str) -> Result<Option<std::time::Duration>, Box<dyn std::error::Error>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(std::time::Duration::from_millis(text.parse()?))),
        Err(_) => Ok(None),
    }
}
