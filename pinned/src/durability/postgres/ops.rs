//! The operations on one instance (D3, D9.8), and the listing across instances.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error as PgError};

use super::acquire::Act;
use super::config::Stamp;
use super::failure::Failure;
use super::rows::RowWrites;
use super::transaction::Work;
use crate::durability::{Doc, InstanceKey, Row, RowFilter, RowOp, RowState, StoreError, TrayKey};

type Params<'a> = Vec<(&'a (dyn ToSql + Sync), Type)>;

// --- Write ------------------------------------------------------------------------------------------------------------

/// Applies `ops`, of which no two are on one row.
pub(super) struct Write<'a> {
    pub(super) ops: &'a [RowOp],
    pub(super) stamp: &'a Stamp,
}

impl Act for Write<'_> {
    type Output = ();

    async fn act(&self, client: &Client, instance: &InstanceKey) -> Result<(), Failure> {
        let mut writes = RowWrites::default();
        writes.push(instance, self.ops);
        Ok(writes.apply(client, self.stamp).await?)
    }
}

// --- Get --------------------------------------------------------------------------------------------------------------

/// Reads one row.
pub(super) struct Get {
    pub(super) key: TrayKey,
}

impl Act for Get {
    type Output = Option<RowState>;

    async fn act(
        &self,
        client: &Client,
        instance: &InstanceKey,
    ) -> Result<Option<RowState>, Failure> {
        const GET: &str = "\
            SELECT marked, doc::text FROM pinned_tray_index \
            WHERE ns = $1 AND id = $2 AND tray_ns = $3 AND tray_id = $4";
        let row = client
            .query_typed_opt(
                GET,
                &[
                    (&&*instance.namespace, Type::TEXT),
                    (&&*instance.id, Type::TEXT),
                    (&&*self.key.tray_ns, Type::TEXT),
                    (&&*self.key.tray_id, Type::TEXT),
                ],
            )
            .await?;
        row.map(|row| state(&row, 0)).transpose()
    }
}

// --- List -------------------------------------------------------------------------------------------------------------

/// Reads the rows that a filter admits.
pub(super) struct List {
    pub(super) filter: RowFilter,
}

impl Act for List {
    type Output = Vec<Row>;

    async fn act(&self, client: &Client, instance: &InstanceKey) -> Result<Vec<Row>, Failure> {
        let (ns, id) = (&*instance.namespace, &*instance.id);
        let tray_ns = self.filter.tray_ns.as_deref();
        let mut params: Params<'_> = vec![(&ns, Type::TEXT), (&id, Type::TEXT)];
        let mut query = "SELECT tray_ns, tray_id, marked, doc::text FROM pinned_tray_index \
                         WHERE ns = $1 AND id = $2"
            .to_owned();
        if let Some(tray_ns) = &tray_ns {
            params.push((tray_ns, Type::TEXT));
            query.push_str(" AND tray_ns = $3");
        }
        match self.filter.marked {
            Some(true) => query.push_str(" AND marked"),
            Some(false) => query.push_str(" AND NOT marked"),
            None => {}
        }
        // In the order of bytes, whatever the database's collation is (D5.3).
        query.push_str(" ORDER BY tray_ns COLLATE \"C\", tray_id COLLATE \"C\"");
        let rows = client.query_typed(&query, &params).await?;
        rows.iter()
            .map(|row| {
                Ok(Row {
                    key: TrayKey::new(row.try_get::<_, &str>(0)?, row.try_get::<_, &str>(1)?),
                    state: state(row, 2)?,
                })
            })
            .collect()
    }
}

/// `marked, doc::text` from column `at` on.
fn state(row: &tokio_postgres::Row, at: usize) -> Result<RowState, Failure> {
    let text: &str = row.try_get(at + 1)?;
    // The column takes any JSON, and others write to it too.
    let doc = Doc::parse(text).map_err(|error| Failure::Refused(StoreError::failed(error)))?;
    let marked = row.try_get(at)?;
    Ok(RowState { marked, doc })
}

// --- Marked instances -------------------------------------------------------------------------------------------------

/// Lists the instances with a marked row; acquires none.
pub(super) struct Marked {
    pub(super) after: Option<InstanceKey>,
    pub(super) limit: i64,
}

impl Work for Marked {
    type Found = Vec<InstanceKey>;
    type Output = Vec<InstanceKey>;

    async fn find(&self, client: &Client) -> Result<Vec<InstanceKey>, PgError> {
        let mut params: Params<'_> = vec![(&self.limit, Type::INT8)];
        let after = self.after.as_ref().map(|key| (&*key.namespace, &*key.id));
        let beyond = match &after {
            Some((ns, id)) => {
                params.push((ns, Type::TEXT));
                params.push((id, Type::TEXT));
                "AND (ns COLLATE \"C\", id COLLATE \"C\") > ($2, $3)"
            }
            None => "",
        };
        // The collation stands in the select list, where `DISTINCT` and `ORDER BY` meet.
        let query = format!(
            "SELECT DISTINCT ns COLLATE \"C\" AS ns, id COLLATE \"C\" AS id FROM pinned_tray_index \
             WHERE marked {beyond} ORDER BY 1, 2 LIMIT $1"
        );
        let rows = client.query_typed(&query, &params).await?;
        rows.iter()
            .map(|row| {
                let (ns, id): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
                Ok(InstanceKey::new(ns, id))
            })
            .collect()
    }

    async fn proceed(
        &self,
        _: &Client,
        found: Vec<InstanceKey>,
    ) -> Result<Vec<InstanceKey>, Failure> {
        Ok(found)
    }
}
