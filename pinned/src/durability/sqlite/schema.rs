//! The tables, and which version of them a file has (D8.1, D8.2).

use std::path::Path;

use rusqlite::Connection;

use super::file;
use crate::durability::StoreError;

/// The newest version that is known here, kept in `PRAGMA user_version`.
const VERSION: i64 = 1;

/// Marks a file as one of these (`PRAGMA application_id`): the bytes of "pind".
const APPLICATION: i64 = 0x7069_6e64;

/// `TEXT` compares by bytes (D5.3). Docs may be large, so trays have a row id and a slim index; epochs need neither.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS pinned_epoch (
        ns TEXT NOT NULL COLLATE BINARY,
        id TEXT NOT NULL COLLATE BINARY,
        epoch INTEGER NOT NULL,
        PRIMARY KEY (ns, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS pinned_tray_index (
        ns TEXT NOT NULL COLLATE BINARY,
        id TEXT NOT NULL COLLATE BINARY,
        tray_ns TEXT NOT NULL COLLATE BINARY,
        tray_id TEXT NOT NULL COLLATE BINARY,
        marked INTEGER NOT NULL,
        doc TEXT NOT NULL,
        env TEXT NOT NULL DEFAULT '*',
        hostname TEXT NOT NULL DEFAULT '*',
        PRIMARY KEY (ns, id, tray_ns, tray_id)
    ) STRICT;
    CREATE INDEX IF NOT EXISTS pinned_tray_marked ON pinned_tray_index (ns, id) WHERE marked = 1;
";

/// What SQLite says, and then what the store says.
pub(super) type Checked<T> = rusqlite::Result<Result<T, StoreError>>;

/// Refuses the file of a newer version, and that of another program.
pub(super) fn check(connection: &Connection, path: &Path) -> Checked<()> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != APPLICATION && application != 0 {
        return Ok(Err(file::error(
            path,
            "is the database of another program",
            None,
        )));
    }
    if found > VERSION {
        return Ok(Err(StoreError::TooNew {
            store: path.display().to_string(),
            found,
            known: VERSION,
        }));
    }
    Ok(Ok(()))
}

/// Makes what is missing, within the transaction that is open; other processes wait for its end.
pub(super) fn create(connection: &Connection, path: &Path) -> Checked<()> {
    if let Err(refused) = check(connection, path)? {
        return Ok(Err(refused));
    }
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found < VERSION {
        connection.execute_batch(TABLES)?;
        connection.pragma_update(None, "application_id", APPLICATION)?;
        connection.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(Ok(()))
}
