//! Connections that die or hang at each step of a transaction (D11, D19.4).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinned::durability::postgres::{PostgresOptions, PostgresStore};
use pinned::durability::{RowFilter, StateStore, StoreError};
use pinned_testing::Gate;

use super::fast::fast_domain;
use super::proxy::{Fate, Proxy, Statement};
use super::rig::{LOCK_WAITS, Rig, claim, read, store, within, write};

const STEPS: [&str; 3] = ["BEGIN", "SELECT", "INSERT"];

struct Faulty {
    rig: Rig,
    proxy: Proxy,
    store: PostgresStore,
}

impl Faulty {
    /// A store behind a proxy, with no connection yet.
    async fn new(options: PostgresOptions) -> Self {
        let rig = Rig::new().await;
        rig.acquire("blue", 1).await;
        let proxy = Proxy::before(&rig.dsn).await;
        let store = store(&proxy.dsn, options);
        Self { rig, proxy, store }
    }

    /// The same, with one connection parked.
    async fn parked(options: PostgresOptions) -> Self {
        let faulty = Self::new(options).await;
        write(&faulty.store, "blue", 1, 0)
            .await
            .expect("well so far");
        assert_eq!(faulty.proxy.dialled(), 1);
        faulty.proxy.forget();
        faulty
    }

    /// What happens to statements that begin like this, on those connections.
    fn fail(
        &self,
        beginning: &'static str,
        connections: std::ops::Range<usize>,
        fate: fn() -> Fate,
    ) {
        self.proxy.plan(move |statement: Statement<'_>| {
            if connections.contains(&statement.connection) && statement.text.starts_with(beginning)
            {
                fate()
            } else {
                Fate::Pass
            }
        });
    }
}

fn failed(outcome: Result<(), StoreError>) {
    let error = outcome.expect_err("propagated");
    assert!(matches!(error, StoreError::Failed(_)), "{error:?}");
}

// D19.4, D11.3
#[tokio::test]
async fn a_parked_connection_that_dies_at_a_statement_costs_a_replay_on_another() {
    for step in STEPS {
        let faulty = Faulty::parked(PostgresOptions::new()).await;
        faulty.fail(step, 0..1, || Fate::Cut);
        write(&faulty.store, "blue", 1, 1).await.expect("replayed");
        assert_eq!(
            faulty.rig.rows("blue").await,
            [r#"work/~ true {"n": 1}"#],
            "{step}"
        );
        assert_eq!(faulty.proxy.dialled(), 2, "{step}");
        assert_eq!(faulty.proxy.count("COMMIT"), 1, "{step}");
    }
}

// D19.4, D11.3: an operation that goes alone, too.
#[tokio::test]
async fn a_read_is_replayed_as_a_write_is() {
    for step in ["BEGIN", "SELECT epoch", "SELECT tray_ns"] {
        let faulty = Faulty::parked(PostgresOptions::new()).await;
        faulty.fail(step, 0..1, || Fate::Cut);
        read(&faulty.store, "blue", 1).await.expect("replayed");
        assert_eq!(faulty.proxy.dialled(), 2, "{step}");
    }
}

// D19.4, D11.4
#[tokio::test]
async fn a_fresh_connection_that_dies_is_the_end_of_it() {
    for step in STEPS {
        let faulty = Faulty::new(PostgresOptions::new()).await;
        faulty.fail(step, 0..9, || Fate::Cut);
        failed(write(&faulty.store, "blue", 1, 1).await);
        assert_eq!(faulty.proxy.dialled(), 1, "{step}");
        assert_eq!(faulty.rig.rows("blue").await, [""; 0]);
    }
}

// D19.4, D11.6
#[tokio::test]
async fn a_dead_pool_costs_one_attempt_for_each_connection_and_one_dial() {
    let faulty = Faulty::new(PostgresOptions::new().pool_size(3)).await;
    let rooms = ["a", "b", "c"];
    for room in rooms {
        faulty.rig.acquire(room, 1).await;
    }
    faulty
        .rig
        .db
        .batch_execute("BEGIN; SELECT * FROM pinned_epoch FOR UPDATE")
        .await
        .expect("locked");
    let busy: Vec<_> = rooms
        .iter()
        .map(|room| faulty.store.list(claim(room, 1), RowFilter::all()))
        .collect();
    faulty.rig.until(LOCK_WAITS, 3).await;
    faulty.rig.db.batch_execute("COMMIT").await.expect("freed");
    for read in busy {
        within(read).await.expect("read");
    }
    assert_eq!(faulty.proxy.dialled(), 3);
    faulty.proxy.forget();

    let died = Arc::new(parking_lot::Mutex::new(Vec::new()));
    faulty.proxy.plan({
        let died = Arc::clone(&died);
        move |statement| {
            if statement.connection < 3 {
                died.lock().push(statement.connection);
                Fate::Cut
            } else {
                Fate::Pass
            }
        }
    });
    write(&faulty.store, "blue", 1, 1)
        .await
        .expect("carried by a dial");
    assert_eq!(faulty.proxy.dialled(), 4);
    let mut died = died.lock().clone();
    died.sort_unstable();
    assert_eq!(died, [0, 1, 2]);
    assert_eq!(faulty.rig.rows("blue").await, [r#"work/~ true {"n": 1}"#]);
}

// D19.4, D11.5
#[tokio::test]
async fn a_connection_that_dies_at_the_commit_is_not_replayed() {
    for grouped in [true, false] {
        let faulty = Faulty::parked(PostgresOptions::new()).await;
        faulty.fail("COMMIT", 0..1, || Fate::Cut);
        failed(if grouped {
            write(&faulty.store, "blue", 1, 1).await
        } else {
            read(&faulty.store, "blue", 1).await
        });
        assert_eq!(faulty.proxy.dialled(), 1);
        assert_eq!(faulty.proxy.count("BEGIN"), 1, "no replay");
        // The connection is gone, and the next operation has another.
        write(&faulty.store, "blue", 1, 2).await.expect("written");
        assert_eq!(faulty.proxy.dialled(), 2);
        assert_eq!(faulty.rig.rows("blue").await, [r#"work/~ true {"n": 2}"#]);
    }
}

fn fast() -> PostgresOptions {
    PostgresOptions::new().domain(fast_domain())
}

// D19.4, D11.1 to D11.3
#[tokio::test]
async fn a_parked_connection_that_hangs_at_a_statement_costs_the_deadline_and_a_replay() {
    for step in STEPS {
        let faulty = Faulty::parked(fast()).await;
        faulty.fail(step, 0..1, || Fate::Hang);
        write(&faulty.store, "blue", 1, 1).await.expect("replayed");
        assert_eq!(faulty.proxy.dialled(), 2, "{step}");
        assert_eq!(
            faulty.rig.rows("blue").await,
            [r#"work/~ true {"n": 1}"#],
            "{step}"
        );
    }
}

// D19.4, D11.4
#[tokio::test]
async fn a_fresh_connection_that_hangs_costs_the_deadline_and_no_replay() {
    let faulty = Faulty::new(fast()).await;
    faulty.fail("SELECT", 0..9, || Fate::Hang);
    failed(write(&faulty.store, "blue", 1, 1).await);
    assert_eq!(faulty.proxy.dialled(), 1);
}

// D19.4, D11.5
#[tokio::test]
async fn a_connection_that_hangs_at_the_commit_costs_the_deadline_and_no_replay() {
    let faulty = Faulty::parked(fast()).await;
    faulty.fail("COMMIT", 0..1, || Fate::Hang);
    failed(write(&faulty.store, "blue", 1, 1).await);
    assert_eq!(faulty.proxy.dialled(), 1);
    assert_eq!(faulty.proxy.count("BEGIN"), 1);
}

// D11.2: what the server refuses costs a rollback, and not the connection.
#[tokio::test]
async fn an_error_of_the_server_leaves_the_connection_in_the_pool() {
    let faulty = Faulty::parked(PostgresOptions::new()).await;
    faulty
        .rig
        .db
        .batch_execute("ALTER TABLE pinned_tray_index RENAME TO gone")
        .await
        .expect("renamed");
    for _ in 0..3 {
        let error = write(&faulty.store, "blue", 1, 1)
            .await
            .expect_err("no table");
        let StoreError::Failed(cause) = error else {
            panic!("{error:?}")
        };
        assert_eq!(
            cause.to_string(),
            "relation \"pinned_tray_index\" does not exist (SQLSTATE 42P01)"
        );
    }
    assert_eq!(faulty.proxy.count("ROLLBACK"), 3);
    assert_eq!(faulty.proxy.dialled(), 1);
}

// Rows are the user's, and errors end up in logs.
#[tokio::test]
async fn an_error_shows_no_value_of_a_row() {
    let faulty = Faulty::parked(PostgresOptions::new()).await;
    faulty
        .rig
        .db
        .batch_execute("ALTER TABLE pinned_tray_index ADD CHECK (doc->>'n' <> '31337')")
        .await
        .expect("constrained");
    let error = write(&faulty.store, "blue", 1, 31_337)
        .await
        .expect_err("refused");
    let StoreError::Failed(cause) = &error else {
        panic!("{error:?}")
    };
    assert!(cause.to_string().contains("check constraint"), "{cause}");
    assert!(!format!("{error:?} {cause}").contains("31337"), "{error:?}");
}

// D11.2
#[tokio::test]
async fn a_rollback_that_fails_costs_the_connection_alone() {
    let faulty = Faulty::parked(PostgresOptions::new()).await;
    let cut = Arc::new(AtomicBool::new(false));
    faulty.proxy.plan({
        let cut = Arc::clone(&cut);
        move |statement| {
            if statement.text.starts_with("ROLLBACK") && !cut.swap(true, Ordering::Relaxed) {
                Fate::Cut
            } else {
                Fate::Pass
            }
        }
    });
    let lost = read(&faulty.store, "blue", 0).await.expect_err("fenced");
    assert!(lost.is_fence_lost() && cut.load(Ordering::Relaxed));
    read(&faulty.store, "blue", 1).await.expect("on another");
    assert_eq!(faulty.proxy.dialled(), 2);
}

// D2.4, D9.1: a worker that is stopped between two statements keeps the locks of its transaction for seconds, and not until
// somebody lets it go on.
#[tokio::test]
async fn a_worker_that_stops_in_the_middle_of_a_transaction_lets_its_successor_pass() {
    const IDLE: &str = "SELECT count(*) FROM pg_stat_activity \
         WHERE datname = current_database() AND state = 'idle in transaction'";
    let faulty = Faulty::parked(PostgresOptions::new()).await;
    let gate = Gate::new();
    faulty.proxy.plan({
        let gate = gate.clone();
        move |statement| {
            if statement.connection == 0 && statement.text.starts_with("INSERT") {
                Fate::Hold(gate.clone())
            } else {
                Fate::Pass
            }
        }
    });
    let late = tokio::spawn({
        let store = Arc::new(faulty.store);
        async move { write(&store, "blue", 1, 1).await }
    });
    faulty.rig.until(IDLE, 1).await;
    let successor = store(&faulty.rig.dsn, PostgresOptions::new());
    within(write(&successor, "blue", 2, 2))
        .await
        .expect("it passes");
    gate.open();
    // Its transaction is gone; tried again, it meets the fence.
    let late = within(late).await.expect("no panic");
    let late = late.expect_err("a late write");
    assert!(late.is_fence_lost(), "{late:?}");
    assert_eq!(faulty.rig.rows("blue").await, [r#"work/~ true {"n": 2}"#]);
}
