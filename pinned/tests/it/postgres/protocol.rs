//! What a transaction does, and in which order (D9).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinned::durability::postgres::{PostgresOptions, TransactionHook};
use pinned::durability::{Doc, RowFilter, RowOp, StateStore, StoreError};

use super::proxy::Proxy;
use super::rig::{LOCK_WAITS, Rig, all_kinds, claim, doc, key, read, store, within, write};

fn hook(sql: &'static str) -> TransactionHook {
    Arc::new(move |transaction| Box::pin(async move { Ok(transaction.batch_execute(sql).await?) }))
}

// D19.1, D9.4
#[tokio::test]
async fn the_epoch_row_keeps_its_version_at_an_equal_epoch_and_changes_once_on_an_advance() {
    let rig = Rig::new().await;
    read(&rig.store, "blue", 3).await.expect("the first");
    let first = rig.epoch("blue").await;
    assert_eq!(first.as_ref().map(|row| row.0), Some(3));
    for outcome in within(all_kinds(&rig.store, "blue", 3)).await {
        outcome.expect("at the stored epoch");
        assert_eq!(rig.epoch("blue").await, first);
    }

    for outcome in within(all_kinds(&rig.store, "blue", 4)).await {
        outcome.expect("at a newer epoch");
    }
    let second = rig.epoch("blue").await;
    assert_eq!(second.as_ref().map(|row| row.0), Some(4));
    assert_ne!(second, first);
    for outcome in within(all_kinds(&rig.store, "blue", 4)).await {
        outcome.expect("at the stored epoch");
        assert_eq!(rig.epoch("blue").await, second);
    }
}

// D2.3: each kind of operation can be the one that advances.
#[tokio::test]
async fn each_kind_of_operation_acquires_and_each_is_fenced() {
    let rig = Rig::new().await;
    let mut epoch = 0;
    for kind in 0..6 {
        epoch += 10;
        let claim = claim("blue", epoch);
        let outcome = match kind {
            0 => rig.store.list(claim, RowFilter::all()).await.map(drop),
            1 => rig.store.get_tray(claim, key("none")).await.map(drop),
            2 => {
                rig.store
                    .set_tray(claim, key("a"), false, Doc::empty())
                    .await
            }
            3 => rig.store.delete_tray(claim, key("none")).await,
            4 => {
                rig.store
                    .apply_batch(claim, vec![RowOp::delete(key("a"))])
                    .await
            }
            _ => rig.store.apply_batch(claim, Vec::new()).await,
        };
        outcome.expect("a newer epoch");
        assert_eq!(
            rig.epoch("blue").await.map(|row| row.0),
            i64::try_from(epoch).ok()
        );
        for outcome in within(all_kinds(&rig.store, "blue", epoch - 1)).await {
            assert!(outcome.is_err_and(|error| error.is_fence_lost()));
        }
        assert_eq!(
            rig.rows("blue").await.len(),
            usize::from(kind == 2 || kind == 3)
        );
    }
}

// D9.5
#[tokio::test]
async fn of_two_first_writers_the_second_waits_and_then_adopts_advances_or_is_fenced() {
    for (epoch, expected) in [(5, Some(5)), (7, Some(7)), (4, None)] {
        let rig = Rig::new().await;
        rig.db
            .batch_execute("BEGIN; INSERT INTO pinned_epoch VALUES ('/rooms', 'blue', 5)")
            .await
            .expect("the first writer");
        let second = rig.store.list(claim("blue", epoch), RowFilter::all());
        rig.until(LOCK_WAITS, 1).await;
        rig.db.batch_execute("COMMIT").await.expect("committed");
        let outcome = within(second).await;
        match expected {
            Some(epoch) => {
                outcome.expect("not fenced");
                assert_eq!(rig.epoch("blue").await.map(|row| row.0), Some(epoch));
            }
            None => assert!(outcome.is_err_and(|error| error.is_fence_lost())),
        }
    }
}

// D9.2, D9.9
#[tokio::test]
async fn a_write_at_the_current_epoch_is_three_statements_and_a_commit_and_a_hook_is_one_more() {
    let rig = Rig::new().await;
    rig.acquire("blue", 1).await;
    let proxy = Proxy::before(&rig.dsn).await;
    write(&store(&proxy.dsn, PostgresOptions::new()), "blue", 1, 1)
        .await
        .expect("written");
    assert_eq!(
        proxy.seen(),
        ["BEGIN ISOLATION", "SELECT w.n,", "INSERT INTO", "COMMIT"]
    );

    proxy.forget();
    let options = PostgresOptions::new().hook(hook("SET LOCAL work_mem = '1MB'"));
    write(&store(&proxy.dsn, options), "blue", 1, 2)
        .await
        .expect("written");
    assert_eq!(
        proxy.seen(),
        [
            "BEGIN ISOLATION",
            "SET LOCAL",
            "SELECT w.n,",
            "INSERT INTO",
            "COMMIT"
        ]
    );
}

// D9.1, D9.3
#[tokio::test]
async fn a_fenced_read_runs_none_of_its_own_statements() {
    let rig = Rig::new().await;
    rig.acquire("blue", 2).await;
    let proxy = Proxy::before(&rig.dsn).await;
    let behind = store(&proxy.dsn, PostgresOptions::new());
    let lost = read(&behind, "blue", 1).await.expect_err("fenced");
    assert_eq!(
        lost.to_string(),
        "fenced off: a newer activation of /rooms/blue has acquired it, epoch 1 may write no more"
    );
    assert_eq!(
        proxy.seen(),
        ["BEGIN ISOLATION", "SELECT epoch", "ROLLBACK"]
    );
}

// D9.7
#[tokio::test]
async fn a_hook_that_fails_ends_the_operation_before_any_statement_of_the_store() {
    let rig = Rig::new().await;
    rig.acquire("blue", 1).await;
    let proxy = Proxy::before(&rig.dsn).await;
    let options = PostgresOptions::new().hook(Arc::new(|_| {
        Box::pin(async { Err("the vault is sealed".into()) })
    }));
    let store = store(&proxy.dsn, options);
    for outcome in within(all_kinds(&store, "blue", 1)).await {
        let error = outcome.expect_err("the hook fails");
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        assert_eq!(
            text,
            "the state store failed: the transaction hook failed: the vault is sealed"
        );
    }
    assert_eq!(proxy.count("BEGIN"), 6, "{:?}", proxy.seen());
    assert_eq!(proxy.count("ROLLBACK"), 6, "{:?}", proxy.seen());
    assert_eq!(proxy.seen().len(), 12, "{:?}", proxy.seen());
}

// D9.2: what the hook sets holds in the transaction, and only there.
#[tokio::test]
async fn a_hook_chooses_the_schema_of_setup_and_operations() {
    let rig = Rig::new().await;
    rig.db
        .batch_execute("CREATE SCHEMA apart")
        .await
        .expect("made");
    let options = PostgresOptions::new().hook(hook("SET LOCAL search_path = apart"));
    let apart = store(&rig.dsn, options);
    // D8.4
    within(apart.setup())
        .await
        .expect("made in the other schema");
    write(&apart, "blue", 1, 1).await.expect("written");
    assert_eq!(
        rig.count("SELECT count(*) FROM apart.pinned_tray_index")
            .await,
        1
    );
    assert_eq!(rig.rows("blue").await, [""; 0]);
}

// D11.7, D9.7: the hook runs once for each attempt.
#[tokio::test]
async fn a_lock_timeout_is_tried_again_three_times_on_an_open_connection_and_not_on_a_fresh_one() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted: TransactionHook = {
        let attempts = Arc::clone(&attempts);
        Arc::new(move |transaction| {
            attempts.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                Ok(transaction
                    .batch_execute("SET LOCAL lock_timeout = '20ms'")
                    .await?)
            })
        })
    };
    let rig = Rig::with(PostgresOptions::new().hook(counted)).await;
    rig.acquire("blue", 1).await;
    rig.db
        .batch_execute("BEGIN; SELECT * FROM pinned_epoch FOR UPDATE")
        .await
        .expect("locked");
    // D11.4
    let error = read(&rig.store, "blue", 1).await.expect_err("locked");
    assert!(matches!(error, StoreError::Failed(_)), "{error:?}");
    assert_eq!(attempts.swap(0, Ordering::Relaxed), 1);

    let error = read(&rig.store, "blue", 1).await.expect_err("locked");
    assert!(matches!(error, StoreError::Failed(_)), "{error:?}");
    assert_eq!(attempts.swap(0, Ordering::Relaxed), 4);

    rig.db.batch_execute("COMMIT").await.expect("freed");
    read(&rig.store, "blue", 1).await.expect("free");
    assert_eq!(attempts.load(Ordering::Relaxed), 1);
}

// D19.5
#[tokio::test]
async fn the_last_write_to_a_row_of_a_batch_wins() {
    let rig = Rig::new().await;
    let batch = vec![
        RowOp::set(key("t1"), false, doc(r#"{"n":1}"#)),
        RowOp::set(key("t1"), true, doc(r#"{"n":2}"#)),
        RowOp::set(key("other"), true, Doc::empty()),
        RowOp::delete(key("other")),
    ];
    // The first has no epoch row yet and goes alone, the second goes in a group.
    for _ in 0..2 {
        within(rig.store.apply_batch(claim("blue", 1), batch.clone()))
            .await
            .expect("applied");
        assert_eq!(rig.rows("blue").await, [r#"work/t1 true {"n": 2}"#]);
    }
}

// D8.6
#[tokio::test]
async fn every_written_row_is_stamped_and_an_upsert_stamps_anew() {
    let rig = Rig::new().await;
    let stamps = "SELECT count(*) FROM pinned_tray_index WHERE (env, hostname) = ";
    write(&rig.store, "blue", 1, 1).await.expect("written");
    assert_eq!(rig.count(&format!("{stamps} ('*', '*')")).await, 1);

    let options = PostgresOptions::new().env("prod").hostname("a.example");
    let other = store(&rig.dsn, options);
    write(&other, "blue", 1, 2).await.expect("written");
    write(&other, "red", 1, 1).await.expect("written");
    assert_eq!(
        rig.count(&format!("{stamps} ('prod', 'a.example')")).await,
        2
    );
}
