//! Operations of one instance, in the order of their calls (D10.6).

use pinned::durability::StateStore;

use super::rig::{LOCK_WAITS, Rig, claim, doc, key, within};
use futures_util::future::join_all;

// D10.6
#[tokio::test]
async fn of_many_writes_at_once_the_last_one_called_wins_whichever_is_awaited_first() {
    let rig = Rig::new().await;
    let write = |n: usize| {
        let doc = doc(&format!(r#"{{"n":{n}}}"#));
        rig.store.set_tray(claim("blue", 1), key("~"), true, doc)
    };
    let mut writes: Vec<_> = (0..50).map(write).collect();
    // Behind 49 that nobody has polled yet.
    let last = writes.pop().expect("50");
    within(last).await.expect("written");
    assert_eq!(rig.rows("blue").await, [r#"work/~ true {"n": 49}"#]);
    for outcome in within(join_all(writes)).await {
        outcome.expect("written");
    }
    assert_eq!(rig.rows("blue").await, [r#"work/~ true {"n": 49}"#]);
}

#[tokio::test]
async fn a_read_sees_the_writes_called_before_it_and_none_called_after() {
    let rig = Rig::new().await;
    let write = |n: usize| {
        let doc = doc(&format!(r#"{{"n":{n}}}"#));
        rig.store.set_tray(claim("blue", 1), key("~"), true, doc)
    };
    for n in 0..10 {
        let before = write(2 * n);
        let read = rig.store.get_tray(claim("blue", 1), key("~"));
        let after = write(2 * n + 1);
        let (before, read, after) = within(async { tokio::join!(before, read, after) }).await;
        before.expect("written");
        after.expect("written");
        let row = read.expect("read").expect("there");
        assert_eq!(row.doc.to_map()["n"], 2 * n);
    }
}

// D11.9
#[tokio::test]
async fn a_place_in_line_that_is_given_up_holds_nobody_up() {
    let rig = Rig::new().await;
    rig.acquire("blue", 1).await;
    rig.db
        .batch_execute("BEGIN; SELECT * FROM pinned_epoch FOR UPDATE")
        .await
        .expect("locked");
    let write = |n: usize| {
        let doc = doc(&format!(r#"{{"n":{n}}}"#));
        rig.store.set_tray(claim("blue", 1), key("~"), true, doc)
    };
    let (first, second, third) = (write(1), write(2), write(3));
    rig.until(LOCK_WAITS, 1).await;
    drop(second);
    drop(first);
    rig.db.batch_execute("COMMIT").await.expect("freed");
    within(third).await.expect("written");
    assert_eq!(rig.rows("blue").await, [r#"work/~ true {"n": 3}"#]);
}
