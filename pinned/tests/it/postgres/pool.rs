//! The pool: slots, dials, and what a cancelled operation leaves (D10, D11.9).

use futures_util::future::join_all;
use pinned::durability::postgres::{PostgresOptions, PostgresStore};
use pinned::durability::{RowFilter, StateStore, StoreError};

use super::rig::{LOCK_WAITS, Rig, claim, read, session, store, within, write};

const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity \
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'pinned%'";

// D10.1, D10.2
#[tokio::test]
async fn connections_are_dialled_when_needed_and_no_more_than_the_pool_has_slots() {
    let rig = Rig::with(PostgresOptions::new().pool_size(3)).await;
    rig.until(SESSIONS, 0).await;
    for _ in 0..3 {
        read(&rig.store, "blue", 1).await.expect("read");
    }
    assert_eq!(
        rig.count(SESSIONS).await,
        1,
        "one after the other needs one"
    );

    let reads = (0..32).map(|n| rig.store.list(claim(&n.to_string(), 1), RowFilter::all()));
    for outcome in within(join_all(reads)).await {
        outcome.expect("read");
    }
    assert_eq!(rig.count(SESSIONS).await, 3);
}

// D19.3
#[tokio::test]
async fn after_a_parked_backend_was_killed_the_next_operation_succeeds_on_another() {
    let rig = Rig::with(PostgresOptions::new().pool_size(1)).await;
    rig.acquire("blue", 1).await;
    let backend = "SELECT max(pid)::bigint FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name LIKE 'pinned%'";
    write(&rig.store, "blue", 1, 1).await.expect("written");
    let first = rig.count(backend).await;
    let kill = format!("SELECT count(pg_terminate_backend({first}))");
    assert_eq!(rig.count(&kill).await, 1);
    write(&rig.store, "blue", 1, 2).await.expect("written");
    assert_ne!(rig.count(backend).await, first);
    assert_eq!(rig.rows("blue").await, [r#"work/~ true {"n": 2}"#]);
}

// D10.3
#[tokio::test]
async fn dials_that_fail_lose_no_slot() {
    // Nobody listens on a port that was just given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let dsn = format!("postgres://u:s3cret@127.0.0.1:{port}/db");
    let store = store(&dsn, PostgresOptions::new().pool_size(2));
    for n in 0..6 {
        let error = write(&store, &n.to_string(), 1, 1)
            .await
            .expect_err("nobody listens");
        assert!(matches!(error, StoreError::Failed(_)), "{error:?}");
        let error = read(&store, &n.to_string(), 1)
            .await
            .expect_err("nobody listens");
        assert!(
            !format!("{error:?} {store:?}").contains("s3cret"),
            "{error:?}"
        );
    }
}

// D10.1, D10.5
#[tokio::test]
async fn a_supplied_connection_is_the_only_one_and_is_never_dialled_again() {
    let rig = Rig::new().await;
    let client = session(&rig.dsn).await;
    let pid: i32 = client
        .query_one("SELECT pg_backend_pid()", &[])
        .await
        .expect("alive")
        .get(0);
    let store = PostgresStore::from_client(client, PostgresOptions::new()).expect("good options");
    write(&store, "blue", 1, 1).await.expect("written");
    write(&store, "blue", 1, 2).await.expect("written");
    assert_eq!(rig.rows("blue").await, [r#"work/~ true {"n": 2}"#]);

    rig.count(&format!("SELECT count(pg_terminate_backend({pid}))"))
        .await;
    for attempt in 0..3 {
        let error = read(&store, "blue", 1).await.expect_err("closed");
        let StoreError::Failed(cause) = error else {
            panic!("{error:?}")
        };
        // The first may be the one that finds out.
        assert!(
            attempt == 0 || cause.to_string() == "the connection is closed",
            "{cause}"
        );
    }
}

// D19.2, D10.7
#[tokio::test]
async fn an_instance_whose_epoch_row_is_locked_outside_stalls_no_other() {
    let rig = Rig::with(PostgresOptions::new().pool_size(2)).await;
    for room in ["blue", "red"] {
        rig.acquire(room, 1).await;
    }
    rig.db
        .batch_execute("BEGIN; SELECT * FROM pinned_epoch WHERE id = 'blue' FOR UPDATE")
        .await
        .expect("locked");
    let (store, other) = (rig.store.clone(), rig.store.clone());
    let stalled = tokio::spawn(async move { write(&store, "blue", 1, 1).await });
    rig.until(LOCK_WAITS, 1).await;
    write(&other, "red", 1, 1).await.expect("not stalled");
    read(&other, "red", 1).await.expect("not stalled");
    assert!(!stalled.is_finished());
    rig.db.batch_execute("COMMIT").await.expect("freed");
    within(stalled).await.expect("no panic").expect("written");
    assert_eq!(rig.rows("blue").await.len(), 1);
}

// D11.9
#[tokio::test]
async fn an_operation_that_is_dropped_while_it_waits_for_a_lock_frees_its_slot_and_its_backend() {
    let rig = Rig::with(PostgresOptions::new().pool_size(1)).await;
    for room in ["blue", "red"] {
        rig.acquire(room, 1).await;
    }
    rig.db
        .batch_execute("BEGIN; SELECT * FROM pinned_epoch WHERE id = 'blue' FOR UPDATE")
        .await
        .expect("locked");
    let stalled = rig.store.list(claim("blue", 1), RowFilter::all());
    rig.until(LOCK_WAITS, 1).await;
    drop(stalled);
    write(&rig.store, "red", 1, 1)
        .await
        .expect("the slot is free");
    // Long before the lock timeout of 25 s.
    rig.until(LOCK_WAITS, 0).await;
    rig.db.batch_execute("COMMIT").await.expect("freed");
    write(&rig.store, "blue", 1, 1)
        .await
        .expect("the line is free");
}
