//! Writing a row.

use rusqlite::types::Null;
use rusqlite::{Connection, Statement};

use crate::durability::{InstanceKey, RowState, TrayKey};

/// Mostly the row is there. An upsert would first make what it would insert.
const UPDATE: &str = "UPDATE pinned_tray_index SET marked = ?5, doc = ?6, env = ?7, hostname = ?8
    WHERE ns = ?1 AND id = ?2 AND tray_ns = ?3 AND tray_id = ?4";

const INSERT: &str =
    "INSERT INTO pinned_tray_index (ns, id, tray_ns, tray_id, marked, doc, env, hostname)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const DOC: usize = 6;

/// A longer doc is not kept in memory once it is written, in bytes.
const KEPT: usize = 1 << 16;

/// Writes rows by statements that are prepared once, and that keep what is the same for all rows.
pub(super) struct RowWriter<'c> {
    stamp: Stamp<'c>,
    statements: Option<Statements<'c>>,
}

#[derive(Clone, Copy)]
struct Stamp<'c> {
    connection: &'c Connection,
    env: &'c str,
    hostname: &'c str,
}

struct Statements<'c> {
    update: Statement<'c>,
    insert: Statement<'c>,
}

impl<'c> RowWriter<'c> {
    /// Rows are stamped with `env` and `hostname`.
    pub(super) fn new(connection: &'c Connection, env: &'c str, hostname: &'c str) -> Self {
        let stamp = Stamp {
            connection,
            env,
            hostname,
        };
        Self {
            stamp,
            statements: None,
        }
    }

    pub(super) fn set(
        &mut self,
        instance: &InstanceKey,
        key: &TrayKey,
        state: &RowState,
    ) -> rusqlite::Result<()> {
        let Self { stamp, statements } = self;
        let statements = match statements {
            Some(statements) => statements,
            // Not before the tables are there.
            none => none.insert(Statements {
                update: stamp.prepare(UPDATE)?,
                insert: stamp.prepare(INSERT)?,
            }),
        };
        if run(&mut statements.update, instance, key, state)? == 0 {
            run(&mut statements.insert, instance, key, state)?;
        }
        Ok(())
    }
}

impl<'c> Stamp<'c> {
    fn prepare(&self, sql: &str) -> rusqlite::Result<Statement<'c>> {
        let mut statement = self.connection.prepare(sql)?;
        statement.raw_bind_parameter(DOC + 1, self.env)?;
        statement.raw_bind_parameter(DOC + 2, self.hostname)?;
        Ok(statement)
    }
}

/// How many rows there were.
fn run(
    statement: &mut Statement<'_>,
    instance: &InstanceKey,
    key: &TrayKey,
    state: &RowState,
) -> rusqlite::Result<usize> {
    let doc = state.doc.as_str();
    statement.raw_bind_parameter(1, &*instance.namespace)?;
    statement.raw_bind_parameter(2, &*instance.id)?;
    statement.raw_bind_parameter(3, &*key.tray_ns)?;
    statement.raw_bind_parameter(4, &*key.tray_id)?;
    statement.raw_bind_parameter(5, state.marked)?;
    statement.raw_bind_parameter(DOC, doc)?;
    let found = statement.raw_execute();
    if doc.len() > KEPT {
        statement.raw_bind_parameter(DOC, Null)?;
    }
    found
}
