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
    update: Prepared<'c>,
    insert: Prepared<'c>,
}

struct Prepared<'c> {
    statement: Statement<'c>,
    /// What names a row, as it is bound: mostly the next row shares all of it but the id, and SQLite would copy each text.
    named: [String; NAMES],
}

/// The parameters that name a row: the first ones.
const NAMES: usize = 4;

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
        let written = self.write(instance, key, state);
        if written.is_err() {
            // A text that could not be bound leaves NULL where the one before was.
            self.statements = None;
        }
        written
    }

    fn write(
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
        if statements.update.run(instance, key, state)? == 0 {
            statements.insert.run(instance, key, state)?;
        }
        Ok(())
    }
}

impl<'c> Stamp<'c> {
    fn prepare(&self, sql: &str) -> rusqlite::Result<Prepared<'c>> {
        let mut statement = self.connection.prepare(sql)?;
        statement.raw_bind_parameter(DOC + 1, self.env)?;
        statement.raw_bind_parameter(DOC + 2, self.hostname)?;
        for index in 1..=NAMES {
            statement.raw_bind_parameter(index, "")?;
        }
        Ok(Prepared {
            statement,
            named: Default::default(),
        })
    }
}

impl Prepared<'_> {
    /// How many rows there were.
    fn run(
        &mut self,
        instance: &InstanceKey,
        key: &TrayKey,
        state: &RowState,
    ) -> rusqlite::Result<usize> {
        let Self { statement, named } = self;
        let names: [&str; NAMES] = [
            &instance.namespace,
            &instance.id,
            &key.tray_ns,
            &key.tray_id,
        ];
        for (index, (name, bound)) in (1..).zip(names.into_iter().zip(named)) {
            if name != bound {
                statement.raw_bind_parameter(index, name)?;
                name.clone_into(bound);
            }
        }
        let doc = state.doc.as_str();
        statement.raw_bind_parameter(NAMES + 1, state.marked)?;
        statement.raw_bind_parameter(DOC, doc)?;
        let found = statement.raw_execute();
        if doc.len() > KEPT {
            statement.raw_bind_parameter(DOC, Null)?;
        }
        found
    }
}
