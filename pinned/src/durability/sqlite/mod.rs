//! The store in a file.
//!
//! SQLite blocks its caller for as long as the disk takes, so one thread of its own does all the work (`writer`).
//! Whatever has come in while it was busy goes into one transaction, and is confirmed by one flush of the disk
//! (`queue`, `job`). `tables` and `row_writer` are what an operation does, `epochs` what it need not read again. `file` and
//! `schema` are where it does it, `place` tells whether the file is still there, and `lock` keeps other processes out.

mod epochs;
mod file;
mod job;
mod lock;
mod options;
mod place;
mod queue;
mod row_writer;
mod schema;
mod store;
mod tables;
#[cfg(test)]
mod tests;
mod watch;
mod writer;

pub use options::SqliteOptions;
pub use store::SqliteStore;
