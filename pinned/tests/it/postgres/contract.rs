//! The contract of state stores (D1 to D6), on PostgreSQL.

use std::sync::Arc;

use pinned::durability::StateStore;
use pinned::durability::postgres::PostgresOptions;
use pinned_testing::{PostgresServer, conformance};

use super::rig::store;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_on_postgresql_keeps_the_contract() {
    let dsn = PostgresServer::shared().await.create_database().await;
    // Workers of their own, as in a fleet.
    let open = || async { Arc::new(store(&dsn, PostgresOptions::new())) as Arc<dyn StateStore> };
    conformance::state_store(open).await;
}
