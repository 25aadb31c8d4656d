//! How a store is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::store::SqliteStore;
use crate::durability::StoreError;

/// What [`SqliteStore::options`] is asked for.
#[derive(Clone, Debug)]
#[must_use = "a store is opened by `open`"]
pub struct SqliteOptions {
    pub(super) path: PathBuf,
    pub(super) env: String,
    pub(super) hostname: String,
    pub(super) busy_timeout: Duration,
}

impl SqliteOptions {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            // "Every environment" and "every host", as a store of a single world says it (D8.6).
            env: "*".to_owned(),
            hostname: "*".to_owned(),
            busy_timeout: Duration::from_secs(10),
        }
    }

    /// The environment that written rows are stamped with. Default: `*`.
    pub fn env(mut self, env: impl Into<String>) -> Self {
        self.env = env.into();
        self
    }

    /// The worker's host name that written rows are stamped with. Default: `*`.
    pub fn hostname(mut self, hostname: impl Into<String>) -> Self {
        self.hostname = hostname.into();
        self
    }

    /// How long a transaction waits for other processes that have the file open, at most about 24 days. Default: 10
    /// seconds, far beyond any transaction of a worker.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Opens the file, and makes it when it is missing, readable and writable for its owner alone.
    ///
    /// Blocks for as long as the disk takes; meant for the start of a program.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for a path that names no file; [`StoreError::TooNew`]; [`StoreError::Failed`] with what
    /// is wrong with the file, which is left as it was.
    pub fn open(self) -> Result<SqliteStore, StoreError> {
        SqliteStore::with(self)
    }
}
