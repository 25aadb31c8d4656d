//! The durable list in PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinned_domain::{Domain, ErrorChain, TaskHandle};
use tokio::sync::OnceCell;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Cursor, Marked, MarkedError, MarkedPage, MarkedRows};
use crate::config::PostgresTarget;
use crate::store::PlacementKey;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a transaction may take here, and a statement on the server: the server gives up first.
const TIMEOUT: Duration = Duration::from_secs(35);
const BEGIN: &str = "START TRANSACTION READ ONLY; SET LOCAL statement_timeout = '30s'";
const ROWS_PER_PAGE: i64 = 1_000;

/// The tables that workers write, of which this reads the marked rows. It has one connection, made anew when it breaks.
pub struct PostgresRows {
    target: PostgresTarget,
    domain: Domain,
    /// Taken out by whoever works with it, and put back only in good order.
    idle: Mutex<Option<Connection>>,
    tls: OnceCell<MakeRustlsConnect>,
}

/// Dropping it closes the socket.
struct Connection {
    client: Client,
    driver: TaskHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl PostgresRows {
    /// Connects when it is first asked.
    #[must_use]
    pub fn new(target: PostgresTarget, domain: Domain) -> Self {
        Self {
            target,
            domain,
            idle: Mutex::new(None),
            tls: OnceCell::new(),
        }
    }

    async fn dial(&self) -> Result<Connection, BoxError> {
        let config = &self.target.config;
        let (client, driver) = if self.target.tls {
            let tls = self.tls.get_or_try_init(|| async { tls() }).await?;
            let (client, socket) = config.connect(tls.clone()).await?;
            (client, self.domain.spawn(socket.map(ended)))
        } else {
            let (client, socket) = config.connect(NoTls).await?;
            (client, self.domain.spawn(socket.map(ended)))
        };
        Ok(Connection { client, driver })
    }

    /// One query in a transaction of its own; `None` when the tables are not there (yet).
    async fn query(
        &self,
        query: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Option<Vec<tokio_postgres::Row>>, BoxError> {
        let idle = self.idle.lock().take();
        let connection = match idle.filter(|connection| !connection.client.is_closed()) {
            Some(connection) => connection,
            None => self.domain.timeout(CONNECT_TIMEOUT, self.dial()).await??,
        };
        let client = &connection.client;
        let work = async {
            client.batch_execute(BEGIN).await?;
            let rows = client.query_typed(query, params).await;
            client.batch_execute("ROLLBACK").await?;
            rows
        };
        let rows = match self.domain.timeout(TIMEOUT, work).await? {
            Ok(rows) => Some(rows),
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => None,
            Err(error) => return Err(error.into()),
        };
        *self.idle.lock() = Some(connection);
        Ok(rows)
    }
}

fn ended(outcome: Result<(), tokio_postgres::Error>) {
    if let Err(error) = outcome {
        tracing::debug!(
            error = %ErrorChain(&error),
            "the connection to the durable store ended"
        );
    }
}

/// Trusts what the system trusts.
fn tls() -> Result<MakeRustlsConnect, BoxError> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (known, _) = roots.add_parsable_certificates(found.certs);
    if known == 0 {
        return Err(
            "the system has no root certificates; install ca-certificates, or set SSL_CERT_FILE"
                .into(),
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

impl MarkedRows for PostgresRows {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<MarkedPage, MarkedError>> {
        async move {
            let mut params: Vec<(&(dyn ToSql + Sync), Type)> = vec![(&ROWS_PER_PAGE, Type::INT8)];
            let beyond = match after {
                None => "",
                Some(cursor) => {
                    for part in [&cursor.ns, &cursor.id, &cursor.tray_ns, &cursor.tray_id] {
                        params.push((part, Type::TEXT));
                    }
                    "AND (t.ns, t.id, t.tray_ns, t.tray_id) > ($2, $3, $4, $5) "
                }
            };
            // In the order of the primary key, whatever the collation is: each page begins where the index was left, and an index
            // over the marked rows alone serves as well.
            let query = format!(
                "SELECT t.env, t.ns, t.id, t.tray_ns, t.tray_id, e.epoch FROM pinned_tray_index t \
                 LEFT JOIN pinned_epoch e ON e.ns = t.ns AND e.id = t.id \
                 WHERE t.marked {beyond}ORDER BY t.ns, t.id, t.tray_ns, t.tray_id LIMIT $1"
            );
            let rows = self.query(&query, &params).await.map_err(MarkedError)?;
            page(&rows.unwrap_or_default()).map_err(|error| MarkedError(error.into()))
        }
        .boxed()
    }

    fn highest_epoch(&self) -> BoxFuture<'_, Result<u64, MarkedError>> {
        async move {
            const QUERY: &str = "SELECT max(epoch) FROM pinned_epoch";
            let rows = self.query(QUERY, &[]).await.map_err(MarkedError)?;
            let Some(row) = rows.as_ref().and_then(|rows| rows.first()) else {
                return Ok(0);
            };
            let highest = row.try_get::<_, Option<i64>>(0);
            let highest = highest.map_err(|error| MarkedError(error.into()))?;
            Ok(epoch(highest))
        }
        .boxed()
    }
}

fn page(rows: &[tokio_postgres::Row]) -> Result<MarkedPage, tokio_postgres::Error> {
    let mut page = MarkedPage::default();
    // A page has few of either, and they are kept for as long as its ids are.
    let (mut env, mut ns): (Arc<str>, Arc<str>) = Default::default();
    for row in rows {
        share(&mut env, row.try_get(0)?);
        share(&mut ns, row.try_get(1)?);
        let id: &str = row.try_get(2)?;
        let last = page.ids.last().map(|last: &Marked| &last.key);
        if last.is_some_and(|last| last.env == env && last.ns == ns && &*last.id == id) {
            continue;
        }
        page.ids.push(Marked {
            key: PlacementKey::new(Arc::clone(&env), Arc::clone(&ns), id),
            epoch: epoch(row.try_get(5)?),
        });
    }
    if let Some(row) = rows.last()
        && i64::try_from(rows.len()).is_ok_and(|rows| rows == ROWS_PER_PAGE)
    {
        page.next = Some(Cursor {
            ns: row.try_get(1)?,
            id: row.try_get(2)?,
            tray_ns: row.try_get(3)?,
            tray_id: row.try_get(4)?,
        });
    }
    Ok(page)
}

fn share(shared: &mut Arc<str>, text: &str) {
    if &**shared != text {
        *shared = text.into();
    }
}

/// The column is signed; nothing below zero is an epoch.
fn epoch(stored: Option<i64>) -> u64 {
    stored
        .and_then(|epoch| u64::try_from(epoch).ok())
        .unwrap_or(0)
}
