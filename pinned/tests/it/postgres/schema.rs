//! The tables, and who may make them (D8).

use futures_util::future::join_all;
use pinned::durability::postgres::PostgresOptions;
use pinned::durability::{StateStore, StoreError};
use pinned_testing::PostgresServer;

use super::rig::{Rig, session, store, within, write};

const COLUMNS: &str = "SELECT string_agg(table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable \
     || coalesce(' ' || column_default, ''), ', ' ORDER BY table_name, ordinal_position) \
     FROM information_schema.columns WHERE table_name LIKE 'pinned%'";

// D8.1 to D8.3
#[tokio::test]
async fn many_workers_may_set_up_at_once_and_the_tables_are_those_that_others_know() {
    let dsn = PostgresServer::shared().await.create_database().await;
    let stores: Vec<_> = (0..8)
        .map(|_| store(&dsn, PostgresOptions::new()))
        .collect();
    for outcome in within(join_all(stores.iter().map(|store| store.setup()))).await {
        outcome.expect("made once, found by the others");
    }
    within(stores[0].setup()).await.expect("again");

    let db = session(&dsn).await;
    let columns: String = db.query_one(COLUMNS, &[]).await.expect("readable").get(0);
    assert_eq!(
        columns,
        "pinned_epoch.ns text NO, pinned_epoch.id text NO, pinned_epoch.epoch bigint NO, \
         pinned_tray_index.ns text NO, pinned_tray_index.id text NO, pinned_tray_index.tray_ns text NO, \
         pinned_tray_index.tray_id text NO, pinned_tray_index.marked boolean NO, pinned_tray_index.doc jsonb NO, \
         pinned_tray_index.env text NO '*'::text, pinned_tray_index.hostname text NO '*'::text"
    );
    // The two primary keys, and nothing else (D8.3).
    let indexes = "SELECT string_agg(indexdef, '; ' ORDER BY indexname) FROM pg_indexes WHERE tablename LIKE 'pinned%'";
    let indexes: String = db.query_one(indexes, &[]).await.expect("readable").get(0);
    assert_eq!(
        indexes,
        "CREATE UNIQUE INDEX pinned_epoch_pkey ON public.pinned_epoch USING btree (ns, id); \
         CREATE UNIQUE INDEX pinned_tray_index_pkey ON public.pinned_tray_index USING btree (ns, id, tray_ns, tray_id)"
    );
}

#[tokio::test]
async fn tables_of_a_newer_version_are_refused_and_those_without_one_are_taken() {
    let rig = Rig::new().await;
    let comment = |text: &str| format!("COMMENT ON TABLE pinned_tray_index IS {text}");
    rig.db
        .batch_execute(&comment("NULL"))
        .await
        .expect("as another edition leaves it");
    within(rig.store.setup()).await.expect("the first version");

    rig.db
        .batch_execute(&comment("'pinned schema 2'"))
        .await
        .expect("as a newer one leaves it");
    let error = within(rig.store.setup()).await.expect_err("newer");
    assert!(
        matches!(&error, StoreError::TooNew { found: 2, known: 1, store } if store.starts_with("PostgreSQL at 127.0.0.1:")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_role_that_may_not_create_sets_up_where_the_tables_are() {
    let rig = Rig::new().await;
    rig.db
        .batch_execute(
            "CREATE ROLE worker LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON pinned_epoch, pinned_tray_index TO worker",
        )
        .await
        .expect("granted");
    let worker = store(
        &rig.dsn.replace("postgres@", "worker@"),
        PostgresOptions::new(),
    );
    within(worker.setup()).await.expect("nothing to make");
    write(&worker, "blue", 1, 1).await.expect("written");
}

// D2: the proof at the end of a setup is worth something.
#[tokio::test]
async fn a_database_that_does_not_keep_fences_is_refused() {
    let rig = Rig::new().await;
    rig.db
        .batch_execute(
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.epoch := 0; RETURN NEW; END $$; \
             CREATE TRIGGER keep BEFORE INSERT OR UPDATE ON pinned_epoch FOR EACH ROW EXECUTE FUNCTION keep(); \
             UPDATE pinned_epoch SET epoch = 0",
        )
        .await
        .expect("spoilt");
    let error = within(rig.store.setup()).await.expect_err("spoilt");
    assert!(matches!(error, StoreError::Unfenced { .. }), "{error:?}");
}
