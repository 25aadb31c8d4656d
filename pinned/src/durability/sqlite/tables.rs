//! What operations do, within the transaction that is open.

use std::cell::RefCell;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::epochs::Epochs;
use super::place::Place;
use super::row_writer::RowWriter;
use super::schema::{self, Checked};
use crate::durability::{
    Claim, Doc, FenceLost, InstanceKey, Row, RowFilter, RowOp, RowState, StoreError, TrayKey,
};

const VERSION: &str = "PRAGMA data_version";

const EPOCH: &str = "SELECT epoch FROM pinned_epoch WHERE ns = ?1 AND id = ?2";

const ACQUIRE: &str = "INSERT INTO pinned_epoch (ns, id, epoch) VALUES (?1, ?2, ?3)
    ON CONFLICT (ns, id) DO UPDATE SET epoch = excluded.epoch";

const DELETE: &str =
    "DELETE FROM pinned_tray_index WHERE ns = ?1 AND id = ?2 AND tray_ns = ?3 AND tray_id = ?4";

const GET: &str = "SELECT marked, doc FROM pinned_tray_index
    WHERE ns = ?1 AND id = ?2 AND tray_ns = ?3 AND tray_id = ?4";

const LIST: &str = "SELECT tray_ns, tray_id, marked, doc FROM pinned_tray_index
    WHERE ns = ?1 AND id = ?2 AND (?3 IS NULL OR tray_ns = ?3) AND (?4 IS NULL OR marked = ?4)
    ORDER BY tray_ns, tray_id";

const MARKED: &str =
    "SELECT DISTINCT ns, id FROM pinned_tray_index WHERE marked = 1 ORDER BY ns, id LIMIT ?1";

const MARKED_AFTER: &str = "SELECT DISTINCT ns, id FROM pinned_tray_index
    WHERE marked = 1 AND (ns, id) > (?2, ?3) ORDER BY ns, id LIMIT ?1";

/// An open file, and what its rows are stamped with.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) place: Place,
    pub(super) env: String,
    pub(super) hostname: String,
}

/// The tables of a store, as one of its transactions sees them.
pub(super) struct Tables<'c> {
    connection: &'c Connection,
    place: &'c Place,
    epochs: RefCell<Epochs>,
    rows: RefCell<RowWriter<'c>>,
}

impl<'c> Tables<'c> {
    pub(super) fn of(opened: &'c Opened) -> Self {
        let connection = &opened.connection;
        Self {
            connection,
            place: &opened.place,
            epochs: RefCell::default(),
            rows: RefCell::new(RowWriter::new(connection, &opened.env, &opened.hostname)),
        }
    }

    /// Waits for other writers here, and not at the commit.
    pub(super) fn begin(&self) -> rusqlite::Result<()> {
        self.run("BEGIN IMMEDIATE")?;
        let mut version = self.connection.prepare_cached(VERSION)?;
        let version = version.query_row([], |row| row.get(0))?;
        self.epochs.borrow_mut().stand_at(version);
        Ok(())
    }

    /// What came before is durable from here on.
    pub(super) fn commit(&self) -> rusqlite::Result<()> {
        self.run("COMMIT")?;
        self.place.check()
    }

    /// Leaves no transaction open; after some failures there is none any more.
    pub(super) fn roll_back(&self) {
        self.epochs.borrow_mut().forget();
        if !self.connection.is_autocommit()
            && let Err(error) = self.run("ROLLBACK")
        {
            tracing::error!(%error, "a transaction of the state store could not be rolled back");
        }
    }

    fn run(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute([])?;
        Ok(())
    }

    pub(super) fn create(&self, path: &Path) -> Checked<()> {
        schema::create(self.connection, path)
    }

    /// The check of every operation (D2). The row of the epoch is written only when it moves (D9.4).
    pub(super) fn acquire(&self, claim: &Claim) -> Checked<()> {
        let Ok(epoch) = i64::try_from(claim.epoch) else {
            let refused = format!("epoch {}; the highest is {}", claim.epoch, i64::MAX);
            return Ok(Err(StoreError::Invalid(refused)));
        };
        match self.stored_epoch(&claim.instance)? {
            Some(stored) if epoch < stored => return Ok(Err(FenceLost::from(claim).into())),
            Some(stored) if epoch == stored => {}
            _ => {
                let InstanceKey { namespace, id } = &claim.instance;
                let mut acquire = self.connection.prepare_cached(ACQUIRE)?;
                acquire.execute(params![namespace, id, epoch])?;
                self.epochs.borrow_mut().remember(&claim.instance, epoch);
            }
        }
        Ok(Ok(()))
    }

    /// The epoch that stands in the file.
    fn stored_epoch(&self, instance: &InstanceKey) -> rusqlite::Result<Option<i64>> {
        let mut epochs = self.epochs.borrow_mut();
        if let Some(known) = epochs.get(instance) {
            return Ok(Some(known));
        }
        let InstanceKey { namespace, id } = instance;
        let mut stored = self.connection.prepare_cached(EPOCH)?;
        let stored = stored.query_row(params![namespace, id], |row| row.get(0));
        let stored = stored.optional()?;
        if let Some(stored) = stored {
            epochs.remember(instance, stored);
        }
        Ok(stored)
    }

    pub(super) fn apply(&self, instance: &InstanceKey, op: &RowOp) -> rusqlite::Result<()> {
        match &op.state {
            Some(state) => self.rows.borrow_mut().set(instance, &op.key, state)?,
            None => {
                let InstanceKey { namespace, id } = instance;
                let TrayKey { tray_ns, tray_id } = &op.key;
                let mut delete = self.connection.prepare_cached(DELETE)?;
                delete.execute(params![namespace, id, tray_ns, tray_id])?;
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, instance: &InstanceKey, key: &TrayKey) -> Checked<Option<RowState>> {
        let InstanceKey { namespace, id } = instance;
        let mut get = self.connection.prepare_cached(GET)?;
        let found = get.query_row(params![namespace, id, key.tray_ns, key.tray_id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        let Some((marked, doc)) = found.optional()? else {
            return Ok(Ok(None));
        };
        Ok(state(instance, key, marked, doc).map(Some))
    }

    pub(super) fn list(&self, instance: &InstanceKey, filter: &RowFilter) -> Checked<Vec<Row>> {
        let InstanceKey { namespace, id } = instance;
        let mut list = self.connection.prepare_cached(LIST)?;
        let mut found = list.query(params![namespace, id, filter.tray_ns, filter.marked])?;
        let mut rows = vec![];
        while let Some(row) = found.next()? {
            let key = TrayKey::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?);
            match state(instance, &key, row.get(2)?, row.get(3)?) {
                Ok(state) => rows.push(Row { key, state }),
                Err(damaged) => return Ok(Err(damaged)),
            }
        }
        Ok(Ok(rows))
    }

    pub(super) fn marked(
        &self,
        after: Option<&InstanceKey>,
        limit: usize,
    ) -> Checked<Vec<InstanceKey>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let statement = if after.is_some() {
            MARKED_AFTER
        } else {
            MARKED
        };
        let mut marked = self.connection.prepare_cached(statement)?;
        let mut found = match after {
            Some(InstanceKey { namespace, id }) => marked.query(params![limit, namespace, id])?,
            None => marked.query([limit])?,
        };
        let mut instances = vec![];
        while let Some(row) = found.next()? {
            let (namespace, id): (String, String) = (row.get(0)?, row.get(1)?);
            instances.push(InstanceKey::new(namespace, id));
        }
        Ok(Ok(instances))
    }
}

/// The file may have been edited by anybody: a doc is checked again.
fn state(
    instance: &InstanceKey,
    key: &TrayKey,
    marked: bool,
    doc: String,
) -> Result<RowState, StoreError> {
    match Doc::parse(doc) {
        Ok(doc) => Ok(RowState { marked, doc }),
        Err(error) => Err(StoreError::failed(format!(
            "row {key} of {instance} is damaged: {error}"
        ))),
    }
}
