//! Writes of different instances in one transaction.

use futures_util::future::join_all;
use pinned::durability::postgres::{PostgresOptions, PostgresStore};
use pinned::durability::{StateStore, StoreFuture};
use pinned_testing::Gate;

use super::proxy::{Fate, Proxy};
use super::rig::{LOCK_WAITS, Rig, claim, doc, key, store, within};

/// A store whose first commit waits at a gate, with a write before it.
struct Held {
    rig: Rig,
    proxy: Proxy,
    store: PostgresStore,
    gate: Gate,
    first: StoreFuture<()>,
}

impl Held {
    async fn new() -> Self {
        let rig = Rig::new().await;
        for room in 0..20 {
            rig.acquire(&room.to_string(), 5).await;
        }
        let proxy = Proxy::before(&rig.dsn).await;
        let store = store(&proxy.dsn, PostgresOptions::new());
        let gate = Gate::new();
        proxy.plan({
            let (gate, mut held) = (gate.clone(), false);
            move |statement| {
                if statement.text == "COMMIT" && !held {
                    held = true;
                    return Fate::Hold(gate.clone());
                }
                Fate::Pass
            }
        });
        let first = put(&store, 0, 5, 1);
        within(gate.reached()).await;
        Self {
            rig,
            proxy,
            store,
            gate,
            first,
        }
    }
}

fn put(store: &PostgresStore, room: u64, epoch: u64, n: u64) -> StoreFuture<()> {
    let doc = doc(&format!(r#"{{"n":{n}}}"#));
    store.set_tray(claim(&room.to_string(), epoch), key("~"), true, doc)
}

// D10.7
#[tokio::test]
async fn writes_that_wait_share_transactions_and_a_slow_one_holds_none_of_them_up() {
    let held = Held::new().await;
    let writes: Vec<_> = (1..20).map(|room| put(&held.store, room, 5, 1)).collect();
    for outcome in within(join_all(writes)).await {
        outcome.expect("written beside the one that is held");
    }
    let commits = held.proxy.count("COMMIT");
    assert!(
        (1..=5).contains(&commits),
        "{commits} commits for 19 writes"
    );
    assert_eq!(held.rig.rows("0").await, [""; 0], "not committed yet");
    held.gate.open();
    within(held.first).await.expect("written");
}

// D9.3, D9.4, D10.7
#[tokio::test]
async fn each_member_of_a_group_has_its_own_fence() {
    let held = Held::new().await;
    held.rig
        .db
        .batch_execute("BEGIN; SELECT * FROM pinned_epoch WHERE id = '4' FOR UPDATE")
        .await
        .expect("locked");
    let equal = put(&held.store, 1, 5, 1);
    let older = put(&held.store, 2, 4, 1);
    let newer = put(&held.store, 3, 6, 1);
    let locked = put(&held.store, 4, 5, 1);
    let missing = put(&held.store, 99, 5, 1);
    let (equal, older, newer, missing) =
        within(async { tokio::join!(equal, older, newer, missing) }).await;
    equal.expect("written");
    assert!(older.is_err_and(|error| error.is_fence_lost()));
    newer.expect("written");
    missing.expect("written alone");
    held.rig.until(LOCK_WAITS, 1).await;
    held.rig.db.batch_execute("COMMIT").await.expect("freed");
    within(locked).await.expect("written alone, later");
    for (room, rows, epoch) in [
        ("1", 1, 5),
        ("2", 0, 5),
        ("3", 1, 6),
        ("4", 1, 5),
        ("99", 1, 5),
    ] {
        assert_eq!(held.rig.rows(room).await.len(), rows, "{room}");
        assert_eq!(
            held.rig.epoch(room).await.map(|row| row.0),
            Some(epoch),
            "{room}"
        );
    }
    held.gate.open();
    within(held.first).await.expect("written");
}

// D11.9: the write may take effect, and the next one of its instance comes after it.
#[tokio::test]
async fn a_write_dropped_on_its_way_is_not_overtaken_by_the_next_one_of_its_instance() {
    let held = Held::new().await;
    drop(held.first);
    let second = put(&held.store, 0, 5, 2);
    let other = put(&held.store, 1, 5, 1);
    within(other).await.expect("another instance goes on");
    assert_eq!(held.rig.rows("0").await, [""; 0]);
    held.gate.open();
    within(second).await.expect("written");
    assert_eq!(held.rig.rows("0").await, [r#"work/~ true {"n": 2}"#]);
}
