//! One worker alone on a store.

use pinned::durability::postgres::PostgresOptions;
use pinned::durability::{StateStore, StoreError};
use pinned_testing::capture_logs;

use super::rig::{Rig, store, within};

const HOLDERS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted \
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

#[tokio::test]
async fn a_held_store_names_its_holder_and_is_free_once_that_is_gone() {
    let rig = Rig::new().await;
    within(rig.store.hold_alone()).await.expect("free");
    within(rig.store.hold_alone())
        .await
        .expect("held already, by this one");

    let other = store(&rig.dsn, PostgresOptions::new());
    let error = within(other.hold_alone()).await.expect_err("held");
    let StoreError::Held {
        store: what,
        holder,
    } = &error
    else {
        panic!("{error:?}")
    };
    assert!(what.starts_with("PostgreSQL at 127.0.0.1:"), "{what}");
    let pid = format!("pid {}", std::process::id());
    assert!(
        holder.contains(&pid) && holder.contains("at 127.0.0.1"),
        "{holder}"
    );

    drop(rig.store);
    within(other.hold_alone()).await.expect("free again");
}

#[tokio::test]
async fn a_hold_whose_connection_ends_is_reported_and_taken_again() {
    let logs = capture_logs();
    let rig = Rig::new().await;
    within(rig.store.hold_alone()).await.expect("free");
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(rig.count(kill).await, 1);
    rig.until(HOLDERS, 0).await;
    rig.until(HOLDERS, 1).await;
    assert!(logs.find("has ended").is_some());
}

#[tokio::test]
async fn stores_in_different_schemas_of_one_database_do_not_meet() {
    let rig = Rig::new().await;
    rig.db
        .batch_execute("CREATE SCHEMA apart")
        .await
        .expect("made");
    within(rig.store.hold_alone()).await.expect("free");
    let options = PostgresOptions::new().hook(std::sync::Arc::new(|transaction| {
        Box::pin(async move {
            Ok(transaction
                .batch_execute("SET LOCAL search_path = apart")
                .await?)
        })
    }));
    within(store(&rig.dsn, options).hold_alone())
        .await
        .expect("another store");
}
