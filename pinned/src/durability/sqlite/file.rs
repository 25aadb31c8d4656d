//! Opening the file, and making sure that what is confirmed is durable.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::options::SqliteOptions;
use super::place::Place;
use super::schema;
use crate::durability::StoreError;
use crate::error::BoxError;

/// What [`Connection::busy_timeout`] can take.
const LONGEST_WAIT: Duration =
    Duration::from_millis(i32::MAX.unsigned_abs() as u64 / 1_000 * 1_000);

/// Between two tries of what SQLite does not wait for by itself.
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// Prepared statements that are kept: all that the tables use.
const STATEMENTS: usize = 16;

/// What is wrong with the file of a store.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
struct FileError {
    path: String,
    problem: &'static str,
    #[source]
    source: Option<BoxError>,
}

/// The error of `path`.
pub(super) fn error(path: &Path, problem: &'static str, source: Option<BoxError>) -> StoreError {
    StoreError::failed(FileError {
        path: path.display().to_string(),
        problem,
        source,
    })
}

/// Opens the file of `options`, and says where it is.
pub(super) fn open(options: &SqliteOptions) -> Result<(Connection, Place), StoreError> {
    let path = make(&options.path)?;
    // Without `SQLITE_OPEN_URI`: a path is a path. Without a mutex: one thread uses the connection.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags)
        .map_err(|cause| error(&path, "cannot be opened", Some(cause.into())))?;
    prepare_in_time(&connection, &path, options).map_err(|failure| match failure {
        Failure::Sqlite(cause) if cause.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            error(&path, "is no SQLite database", Some(cause.into()))
        }
        Failure::Sqlite(cause) => error(&path, "cannot be used", Some(cause.into())),
        Failure::Refused(error) => error,
    })?;
    let place =
        Place::of(&path).map_err(|cause| error(&path, "cannot be found", Some(cause.into())))?;
    Ok((connection, place))
}

/// Prepares the connection, again for as long as others are in the way.
///
/// Beside what waits by itself: who changes the mode of the journal wants the file for itself, and where two want that
/// SQLite turns one of them away at once, however long it may wait, since they would wait for each other.
#[allow(
    clippy::disallowed_methods,
    reason = "other processes are waited for, on the thread of a program that starts and has no domain yet"
)]
fn prepare_in_time(
    connection: &Connection,
    path: &Path,
    options: &SqliteOptions,
) -> Result<(), Failure> {
    let started = Instant::now();
    loop {
        match prepare(connection, path, options) {
            Err(failure) if failure.is_busy() && started.elapsed() < options.busy_timeout => {
                thread::sleep(BUSY_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

enum Failure {
    Sqlite(rusqlite::Error),
    Refused(StoreError),
}

impl Failure {
    fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite(cause) if cause.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// Makes the file if it is missing, before SQLite would with the permissions of anybody's file.
fn make(path: &Path) -> Result<PathBuf, StoreError> {
    if path.as_os_str().is_empty() || path.as_os_str() == ":memory:" {
        return Err(StoreError::Invalid(
            "a path that names no file; `memory:` is the store that keeps none".to_owned(),
        ));
    }
    // Closing a file gives up all locks that the process has on it (POSIX), and so those of a connection that another
    // thread has opened in between.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock();
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => {}
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
        Err(cause) => return Err(error(path, "cannot be created", Some(cause.into()))),
    }
    let found = fs::metadata(path)
        .and_then(|found| Ok((found, fs::canonicalize(path)?)))
        .map_err(|cause| error(path, "cannot be opened", Some(cause.into())));
    let (found, place) = found?;
    if !found.is_file() {
        return Err(error(path, "is no file", None));
    }
    Ok(place)
}

/// Changes nothing in a file that is not ours, and trusts no setting that was not taken.
fn prepare(connection: &Connection, path: &Path, options: &SqliteOptions) -> Result<(), Failure> {
    connection.busy_timeout(options.busy_timeout.min(LONGEST_WAIT))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    schema::check(connection, path)??;
    if connection.is_readonly("main")? {
        return Err(error(path, "cannot be written to", None).into());
    }
    let set = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, String>(0));
    if set("PRAGMA journal_mode = WAL")? != "wal" {
        let problem =
            "is where SQLite cannot keep a write-ahead log, as on many network file systems";
        return Err(error(path, problem, None).into());
    }
    // Where a flush stops at the disk's cache (macOS), ask for the one that goes through.
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON",
    )?;
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if synchronous != 2 {
        return Err(error(path, "refuses to flush each commit", None).into());
    }
    Ok(())
}
