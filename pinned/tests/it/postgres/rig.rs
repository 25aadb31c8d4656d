//! A store on a database of its own, and a session beside it.

use std::future::Future;
use std::time::Duration;

use pinned::durability::postgres::tokio_postgres::{self, Client, NoTls};
use pinned::durability::postgres::{PostgresOptions, PostgresStore};
use pinned::durability::{
    Claim, Doc, InstanceKey, RowFilter, RowOp, StateStore, StoreError, TrayKey,
};
use pinned_testing::PostgresServer;

/// A database with the tables, a store on it, and sessions of the test's own.
pub(crate) struct Rig {
    pub(crate) dsn: String,
    pub(crate) store: PostgresStore,
    pub(crate) db: Client,
    /// Another session: inside a transaction, what is seen of the others stands still.
    watch: Client,
}

impl Rig {
    pub(crate) async fn new() -> Self {
        Self::with(PostgresOptions::new()).await
    }

    pub(crate) async fn with(options: PostgresOptions) -> Self {
        let dsn = PostgresServer::shared().await.create_database().await;
        // By another store, so that the pool of the rig's own is untouched.
        let maker = store(&dsn, PostgresOptions::new());
        within(maker.setup()).await.expect("the tables are made");
        let store = store(&dsn, options);
        let (db, watch) = (session(&dsn).await, session(&dsn).await);
        Self {
            dsn,
            store,
            db,
            watch,
        }
    }

    /// Makes the epoch row of an instance, so that its writes can go in a group.
    pub(crate) async fn acquire(&self, id: &str, epoch: u64) {
        self.db
            .execute(
                "INSERT INTO pinned_epoch VALUES ('/rooms', $1, $2)",
                &[&id, &i64::try_from(epoch).expect("small")],
            )
            .await
            .expect("a new row");
    }

    /// The stored epoch, and the version of the row.
    pub(crate) async fn epoch(&self, id: &str) -> Option<(i64, String)> {
        const EPOCH: &str =
            "SELECT epoch, xmin::text FROM pinned_epoch WHERE ns = '/rooms' AND id = $1";
        let row = self.db.query_opt(EPOCH, &[&id]).await.expect("readable");
        row.map(|row| (row.get(0), row.get(1)))
    }

    /// The rows of an instance as `tray_ns/tray_id marked doc`.
    pub(crate) async fn rows(&self, id: &str) -> Vec<String> {
        const ROWS: &str = "SELECT tray_ns || '/' || tray_id || ' ' || marked || ' ' || doc::text \
             FROM pinned_tray_index WHERE ns = '/rooms' AND id = $1 ORDER BY 1";
        let rows = self.db.query(ROWS, &[&id]).await.expect("readable");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// One number that SQL tells.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        self.watch.query_one(sql, &[]).await.expect(sql).get(0)
    }

    /// Asks until the answer is `expected`.
    pub(crate) async fn until(&self, sql: &str, expected: i64) {
        within(async {
            while self.count(sql).await != expected {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Sessions on this database that wait for a lock.
pub(crate) const LOCK_WAITS: &str = "SELECT count(*) FROM pg_stat_activity \
     WHERE datname = current_database() AND wait_event_type = 'Lock'";

pub(crate) fn store(dsn: &str, options: PostgresOptions) -> PostgresStore {
    PostgresStore::from_dsn(dsn, options).expect("a good DSN")
}

pub(crate) async fn session(dsn: &str) -> Client {
    let (client, socket) = tokio_postgres::connect(dsn, NoTls)
        .await
        .expect("the server answers");
    tokio::spawn(socket);
    client
}

/// What takes longer than this has hung.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, work).await.expect("no hang")
}

pub(crate) fn claim(id: &str, epoch: u64) -> Claim {
    Claim::new(InstanceKey::new("/rooms", id), epoch)
}

pub(crate) fn key(id: &str) -> TrayKey {
    TrayKey::new("work", id)
}

pub(crate) fn doc(text: &str) -> Doc {
    Doc::parse(text).expect("an object")
}

/// Writes `{"n": n}` into the one tray of an instance.
pub(crate) async fn write(
    store: &PostgresStore,
    id: &str,
    epoch: u64,
    n: u64,
) -> Result<(), StoreError> {
    let doc = doc(&format!(r#"{{"n":{n}}}"#));
    within(store.set_tray(claim(id, epoch), key("~"), true, doc)).await
}

/// Reads, which acquires.
pub(crate) async fn read(store: &PostgresStore, id: &str, epoch: u64) -> Result<(), StoreError> {
    within(store.list(claim(id, epoch), RowFilter::all()))
        .await
        .map(drop)
}

/// One of each kind of operation.
pub(crate) async fn all_kinds(
    store: &PostgresStore,
    id: &str,
    epoch: u64,
) -> [Result<(), StoreError>; 6] {
    let claim = claim(id, epoch);
    [
        store
            .list(claim.clone(), RowFilter::marked())
            .await
            .map(drop),
        store.get_tray(claim.clone(), key("a")).await.map(drop),
        store
            .set_tray(claim.clone(), key("a"), true, Doc::empty())
            .await,
        store.delete_tray(claim.clone(), key("a")).await,
        store
            .apply_batch(
                claim.clone(),
                vec![RowOp::set(key("b"), false, Doc::empty())],
            )
            .await,
        store.apply_batch(claim, Vec::new()).await,
    ]
}
