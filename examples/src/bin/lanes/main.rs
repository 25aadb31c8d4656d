//! A queue of work per id, which survives any crash.
//!
//! ```text
//! curl -X POST localhost:8000/lanes/a/enqueue -H 'content-type: application/json' -d '{"id": "first"}'
//! curl localhost:8000/lanes/a
//! ```
//!
//! An item with `"hold": true` is never finished by its first delivery: kill the process, start it again, and the item
//! runs as attempt 2 without any request.

mod lane;
#[cfg(test)]
mod tests;

use pinned::PinnedWorker;
use pinned::durability::postgres::{PostgresOptions, PostgresStore};

/// State goes to `POSTGRES_DSN` where there is one, else to where `PINNED_STORE` says (an SQLite file).
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    examples::show_warnings();
    let mut worker = PinnedWorker::builder().hosts_from_registry().environment();
    if let Ok(dsn) = std::env::var("POSTGRES_DSN") {
        worker = worker.store(PostgresStore::from_dsn(&dsn, PostgresOptions::new())?);
    }
    worker.build()?.serve().await?;
    Ok(())
}
