//! Rows on their way to the table, as columns: one statement writes any number of them.

use futures_util::future;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error as PgError};

use super::config::Stamp;
use crate::durability::{InstanceKey, RowOp};

const UPSERT: &str = "\
    INSERT INTO pinned_tray_index (ns, id, tray_ns, tray_id, marked, doc, env, hostname) \
    SELECT r.ns, r.id, r.tray_ns, r.tray_id, r.marked, r.doc::jsonb, $7, $8 \
    FROM unnest($1, $2, $3, $4, $5, $6) AS r (ns, id, tray_ns, tray_id, marked, doc) \
    ON CONFLICT (ns, id, tray_ns, tray_id) DO UPDATE \
    SET marked = EXCLUDED.marked, doc = EXCLUDED.doc, env = EXCLUDED.env, hostname = EXCLUDED.hostname";

const DELETE: &str = "\
    DELETE FROM pinned_tray_index AS t \
    USING unnest($1, $2, $3, $4) AS r (ns, id, tray_ns, tray_id) \
    WHERE t.ns = r.ns AND t.id = r.id AND t.tray_ns = r.tray_ns AND t.tray_id = r.tray_id";

/// The last writes to some rows, each row at most once: `ON CONFLICT` cannot touch a row twice.
#[derive(Default)]
pub(super) struct RowWrites<'a> {
    set: Keys<'a>,
    marked: Vec<bool>,
    docs: Vec<&'a str>,
    deleted: Keys<'a>,
}

#[derive(Default)]
struct Keys<'a> {
    ns: Vec<&'a str>,
    id: Vec<&'a str>,
    tray_ns: Vec<&'a str>,
    tray_id: Vec<&'a str>,
}

impl<'a> Keys<'a> {
    fn push(&mut self, instance: &'a InstanceKey, op: &'a RowOp) {
        self.ns.push(&instance.namespace);
        self.id.push(&instance.id);
        self.tray_ns.push(&op.key.tray_ns);
        self.tray_id.push(&op.key.tray_id);
    }
}

impl<'a> RowWrites<'a> {
    /// Adds the writes of an instance that is not among them yet; no two of `ops` are on one row.
    pub(super) fn push(&mut self, instance: &'a InstanceKey, ops: &'a [RowOp]) {
        for op in ops {
            match &op.state {
                Some(state) => {
                    self.set.push(instance, op);
                    self.marked.push(state.marked);
                    self.docs.push(state.doc.as_str());
                }
                None => self.deleted.push(instance, op),
            }
        }
    }

    /// Writes and deletes, in one round trip.
    pub(super) async fn apply(&self, client: &Client, stamp: &Stamp) -> Result<(), PgError> {
        future::try_join(self.upsert(client, stamp), self.delete(client)).await?;
        Ok(())
    }

    async fn upsert(&self, client: &Client, stamp: &Stamp) -> Result<(), PgError> {
        let keys = &self.set;
        if keys.ns.is_empty() {
            return Ok(());
        }
        client
            .execute_typed(
                UPSERT,
                &[
                    (&keys.ns, Type::TEXT_ARRAY),
                    (&keys.id, Type::TEXT_ARRAY),
                    (&keys.tray_ns, Type::TEXT_ARRAY),
                    (&keys.tray_id, Type::TEXT_ARRAY),
                    (&self.marked, Type::BOOL_ARRAY),
                    (&self.docs, Type::TEXT_ARRAY),
                    (&&*stamp.env, Type::TEXT),
                    (&&*stamp.hostname, Type::TEXT),
                ],
            )
            .await?;
        Ok(())
    }

    async fn delete(&self, client: &Client) -> Result<(), PgError> {
        let keys = &self.deleted;
        if keys.ns.is_empty() {
            return Ok(());
        }
        client
            .execute_typed(
                DELETE,
                &[
                    (&keys.ns, Type::TEXT_ARRAY),
                    (&keys.id, Type::TEXT_ARRAY),
                    (&keys.tray_ns, Type::TEXT_ARRAY),
                    (&keys.tray_id, Type::TEXT_ARRAY),
                ],
            )
            .await?;
        Ok(())
    }
}

/// Leaves the last of the writes to each row (D4.2).
pub(super) fn last_of_each(mut ops: Vec<RowOp>) -> Vec<RowOp> {
    if ops.len() > 1 {
        let mut seen = std::collections::HashSet::new();
        let keep: Vec<bool> = ops.iter().rev().map(|op| seen.insert(&op.key)).collect();
        drop(seen);
        let mut keep = keep.into_iter().rev();
        ops.retain(|_| keep.next().unwrap_or(true));
    }
    ops
}
