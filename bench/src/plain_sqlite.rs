//! A plain loop of one-row transactions as the measure of what a disk does under SQLite.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use pinned::durability::{SqliteStore, StateStore};
use rusqlite::Connection;
use tokio::runtime::Runtime;

use crate::Result;

/// A connection with the store's settings to a file with the store's tables.
pub struct PlainLoop(Connection);

impl PlainLoop {
    /// What it writes.
    pub const DOC: &str = r#"{"queue":[1,2,3],"done":41,"log":"the quick brown fox"}"#;

    /// Makes the file.
    ///
    /// # Errors
    /// When SQLite cannot.
    pub fn open(runtime: &Runtime, path: &Path) -> Result<Self> {
        runtime.block_on(SqliteStore::open(path)?.setup())?;
        let connection = Connection::open(path)?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
        Ok(Self(connection))
    }

    /// Transactions per second, each of which writes the next of `rows` rows and is flushed before the next begins.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn rate(&self, rows: usize, turn: Duration) -> Result<f64> {
        let mut set = self.0.prepare(
            "INSERT INTO pinned_tray_index (ns, id, tray_ns, tray_id, marked, doc)
             VALUES ('/users', ?1, 'work', '~', 1, ?2)
             ON CONFLICT (ns, id, tray_ns, tray_id) DO UPDATE SET marked = excluded.marked, doc = excluded.doc",
        )?;
        let ids: Vec<_> = (0..rows).map(|id| format!("user-{id:06}")).collect();
        let start = Instant::now();
        let mut writes = 0_u32;
        for id in ids.iter().cycle() {
            set.execute([id.as_str(), Self::DOC])?;
            writes += 1;
            if start.elapsed() >= turn {
                break;
            }
        }
        Ok(f64::from(writes) / start.elapsed().as_secs_f64())
    }
}
