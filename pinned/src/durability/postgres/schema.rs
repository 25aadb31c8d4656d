//! The tables, made once by whoever comes first (D8).

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error as PgError};

use super::failure::Failure;
use super::transaction::Work;
use crate::durability::StoreError;

/// The version of the tables that this code writes, and the newest it can read.
const VERSION: i64 = 1;
/// The version stands in a comment, because there is no third table and other editions leave no comment at all.
const COMMENT_PREFIX: &str = "pinned schema ";
/// Serialises setups: two `CREATE TABLE IF NOT EXISTS` at once can both find nothing and collide in the catalog.
const LOCK_KEY: i64 = i64::from_be_bytes(*b"\0\0pinned");

const TABLES: &str = "\
    CREATE TABLE IF NOT EXISTS pinned_epoch (\
        ns TEXT NOT NULL, \
        id TEXT NOT NULL, \
        epoch BIGINT NOT NULL, \
        PRIMARY KEY (ns, id)\
    ); \
    CREATE TABLE IF NOT EXISTS pinned_tray_index (\
        ns TEXT NOT NULL, \
        id TEXT NOT NULL, \
        tray_ns TEXT NOT NULL, \
        tray_id TEXT NOT NULL, \
        marked BOOLEAN NOT NULL, \
        doc JSONB NOT NULL, \
        env TEXT NOT NULL DEFAULT '*', \
        hostname TEXT NOT NULL DEFAULT '*', \
        PRIMARY KEY (ns, id, tray_ns, tray_id)\
    )";

/// Makes what is missing, and refuses tables of a newer version.
pub(super) struct Setup<'a> {
    /// What the error calls the store.
    pub(super) place: &'a str,
}

impl Work for Setup<'_> {
    type Found = ();
    type Output = ();

    async fn find(&self, client: &Client) -> Result<(), PgError> {
        client
            .query_typed(
                "SELECT pg_advisory_xact_lock($1)",
                &[(&LOCK_KEY, Type::INT8)],
            )
            .await?;
        Ok(())
    }

    async fn proceed(&self, client: &Client, (): ()) -> Result<(), Failure> {
        const LOOK: &str = "\
            SELECT to_regclass('pinned_epoch') IS NOT NULL, to_regclass('pinned_tray_index') IS NOT NULL, \
            obj_description(to_regclass('pinned_tray_index'), 'pg_class')";
        let row = client.query_typed_one(LOOK, &[]).await?;
        let (epochs, rows, comment): (bool, bool, Option<&str>) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let found = version(comment);
        if found > VERSION {
            return Err(Failure::Refused(StoreError::TooNew {
                store: self.place.to_owned(),
                found,
                known: VERSION,
            }));
        }
        // Not asked for again where both are there: `IF NOT EXISTS` demands the right to create all the same.
        if !(epochs && rows) {
            client.batch_execute(TABLES).await?;
        }
        // The comment belongs to the owner, so it comes from whoever made the table.
        if !rows {
            let comment =
                format!("COMMENT ON TABLE pinned_tray_index IS '{COMMENT_PREFIX}{VERSION}'");
            client.batch_execute(&comment).await?;
        }
        Ok(())
    }
}

/// What a comment says; any other comment, or none, is on a table of the first version.
fn version(comment: Option<&str>) -> i64 {
    comment
        .and_then(|comment| comment.strip_prefix(COMMENT_PREFIX))
        .and_then(|version| version.trim().parse().ok())
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_a_version_is_of_the_first() {
        assert_eq!(version(None), 1);
        assert_eq!(version(Some("what the trays hold")), 1);
        assert_eq!(version(Some("pinned schema 7")), 7);
    }
}
