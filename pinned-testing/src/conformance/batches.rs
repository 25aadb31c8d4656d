//! Batches (D4).

use pinned::durability::{RowOp, StoreError};
use serde_json::json;

use super::scene::{Scene, Verdict, delete, holds, key, number, set};

pub(super) async fn checks(scene: &Scene) {
    if !scene.store.batches() {
        return are_unsupported(scene).await;
    }
    later_operations_win(scene).await;
    the_order_of_a_batch_is_kept(scene).await;
    a_fenced_batch_leaves_nothing(scene).await;
    an_empty_batch_changes_no_row(scene).await;
    a_batch_is_of_one_instance(scene).await;
    long_batches_are_applied(scene).await;
}

async fn are_unsupported(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    let outcome = room.batch(vec![set(&work, true, number(1))]).await;
    holds(
        "D3.5",
        "a store without batches says Unsupported",
        matches!(outcome, Err(StoreError::Unsupported)),
    );
    room.holds_rows("D3.5", &[]).await;
}

async fn later_operations_win(scene: &Scene) {
    let (room, t1, other) = (scene.fresh(), key("t1", "~"), key("other", "~"));
    let ops = vec![
        set(&t1, false, number(1)),
        set(&t1, true, number(2)),
        set(&other, true, number(3)),
        delete(&other),
    ];
    room.batch(ops).await.holds("D19.5");
    room.holds_rows("S10.8, D4.2, D19.5", &[("t1", "~", true, number(2))])
        .await;
    let ops = vec![
        delete(&t1),
        set(&t1, false, number(4)),
        delete(&key("absent", "~")),
    ];
    room.batch(ops).await.holds("S10.8, D4.2");
    room.holds_rows("S10.8, D4.2", &[("t1", "~", false, number(4))])
        .await;
}

async fn the_order_of_a_batch_is_kept(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    let ops: Vec<RowOp> = (0..50).map(|n| set(&work, n % 2 == 0, number(n))).collect();
    room.batch(ops).await.holds("S10.8");
    room.holds_rows("S10.8, D4.2", &[("work", "~", false, number(49))])
        .await;
}

async fn a_fenced_batch_leaves_nothing(scene: &Scene) {
    let (first, work, other) = (scene.fresh(), key("work", "~"), key("other", "~"));
    let second = first.at(2);
    second.set(&work, true, number(1)).await.holds("S10.10");
    let ops = vec![set(&other, true, number(2)), delete(&work)];
    first.batch(ops).await.fenced("S10.10, D4.3", &first.claim);
    second
        .holds_rows("S10.10, D4.3", &[("work", "~", true, number(1))])
        .await;
}

async fn an_empty_batch_changes_no_row(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    room.set(&work, true, json!({})).await.holds("D4.1");
    room.batch(vec![]).await.holds("D4.1");
    room.holds_rows("D4.1", &[("work", "~", true, json!({}))])
        .await;
}

async fn a_batch_is_of_one_instance(scene: &Scene) {
    let (room, neighbour, work) = (scene.fresh(), scene.fresh(), key("work", "~"));
    neighbour.set(&work, true, number(1)).await.holds("D1.6");
    let ops = vec![delete(&work), set(&key("other", "~"), true, number(2))];
    room.batch(ops).await.holds("D1.6");
    neighbour
        .holds_rows("D1.6", &[("work", "~", true, number(1))])
        .await;
}

async fn long_batches_are_applied(scene: &Scene) {
    const OPS: u64 = 3_000;
    let room = scene.fresh();
    let ops = (0..OPS).map(|n| set(&key("work", &n.to_string()), true, number(n)));
    room.batch(ops.collect()).await.holds("D4.1");
    let rows = room.rows("D4.1").await;
    holds(
        "D4.1",
        "all 3,000 rows of a batch are there",
        rows.len() == 3_000,
    );
    let ops = (0..OPS).map(|n| delete(&key("work", &n.to_string())));
    room.batch(ops.collect()).await.holds("D4.1");
    room.holds_rows("D4.1", &[]).await;
}
