//! Epochs (D2).

use pinned::durability::{RowFilter, StoreError};
use serde_json::json;

use super::scene::{Activation, Scene, Verdict, delete, holds, key, number, set};

pub(super) async fn checks(scene: &Scene) {
    a_successor_overwrites_what_was_left(scene).await;
    a_list_acquires(scene).await;
    a_point_read_acquires(scene).await;
    writes_acquire(scene).await;
    empty_operations_acquire(scene).await;
    epoch_0_is_unfenced_until_another_acquires(scene).await;
    an_equal_epoch_goes_on(scene).await;
    epochs_are_of_one_instance(scene).await;
    a_fenced_operation_changes_nothing(scene).await;
    an_epoch_that_is_refused_fences_nobody(scene).await;
}

/// Every operation of `late` is fenced.
async fn fenced_on_everything(rule: &str, late: &Activation) {
    let work = key("work", "~");
    let claim = &late.claim;
    late.set(&work, true, json!({})).await.fenced(rule, claim);
    late.delete(&work).await.fenced(rule, claim);
    late.get(&work).await.fenced(rule, claim);
    late.list(RowFilter::all()).await.fenced(rule, claim);
    if late.batches() {
        let ops = vec![set(&work, true, json!({})), delete(&key("other", "~"))];
        late.batch(ops).await.fenced(rule, claim);
        late.batch(vec![]).await.fenced(rule, claim);
    }
}

async fn a_successor_overwrites_what_was_left(scene: &Scene) {
    let (first, work) = (scene.fresh(), key("work", "~"));
    let second = first.at(2);
    first.set(&work, true, number(1)).await.holds("S10.1");
    let rule = "S10.1, D2.8 (rows of a superseded writer are read)";
    second.holds_row(rule, &work, Some((true, number(1)))).await;
    second.set(&work, false, number(2)).await.holds("S10.1");
    fenced_on_everything("S10.1, D2.2", &first).await;
    second
        .holds_rows("S10.1", &[("work", "~", false, number(2))])
        .await;
}

async fn a_list_acquires(scene: &Scene) {
    let first = scene.fresh();
    let rule = "S10.2, D2.4";
    first
        .set(&key("work", "~"), true, number(1))
        .await
        .holds(rule);
    first.at(2).list(RowFilter::marked()).await.holds(rule);
    fenced_on_everything(rule, &first).await;
    let rule = "S10.2 (of an instance without rows)";
    let empty = scene.fresh();
    empty.at(2).list(RowFilter::all()).await.holds(rule);
    fenced_on_everything(rule, &empty).await;
}

async fn a_point_read_acquires(scene: &Scene) {
    let (first, work) = (scene.fresh(), key("work", "~"));
    first.set(&work, true, number(1)).await.holds("S10.6");
    first.at(2).get(&work).await.holds("S10.6");
    fenced_on_everything("S10.6", &first).await;
}

async fn writes_acquire(scene: &Scene) {
    let work = key("work", "~");
    let first = scene.fresh();
    first.at(7).set(&work, false, number(7)).await.holds("D2.3");
    fenced_on_everything("D2.3 (after a set)", &first.at(6)).await;
    let first = scene.fresh();
    first.set(&work, false, number(1)).await.holds("D2.3");
    first.at(7).delete(&work).await.holds("D2.3");
    fenced_on_everything("D2.3 (after a delete)", &first.at(6)).await;
}

async fn empty_operations_acquire(scene: &Scene) {
    let absent = key("absent", "~");
    let first = scene.fresh();
    first.at(2).get(&absent).await.holds("D2.6");
    fenced_on_everything("D2.6 (after reading an absent row)", &first).await;
    let first = scene.fresh();
    first.at(2).delete(&absent).await.holds("D2.6");
    fenced_on_everything("D2.6 (after deleting an absent row)", &first).await;
    let first = scene.fresh();
    if first.batches() {
        first.at(2).batch(vec![]).await.holds("D2.6");
        fenced_on_everything("D2.6 (after an empty batch)", &first).await;
    }
}

async fn epoch_0_is_unfenced_until_another_acquires(scene: &Scene) {
    let (local, work) = (scene.fresh().at(0), key("work", "~"));
    let rule = "S10.3, D1.5, D2.5";
    for n in 0..3 {
        local.set(&work, true, number(n)).await.holds(rule);
        local.holds_row(rule, &work, Some((true, number(n)))).await;
    }
    local.at(1).list(RowFilter::all()).await.holds(rule);
    fenced_on_everything(rule, &local).await;
}

async fn an_equal_epoch_goes_on(scene: &Scene) {
    let (room, work) = (scene.fresh().at(3), key("work", "~"));
    for n in 0..3 {
        room.set(&work, false, number(n)).await.holds("D2.3");
        room.rows("D2.3").await;
    }
    // Steps may be wide.
    let far = room.at(i64::MAX.unsigned_abs());
    far.set(&work, false, number(4)).await.holds("D2.3");
    fenced_on_everything("D2.2", &room).await;
}

async fn epochs_are_of_one_instance(scene: &Scene) {
    let (blue, red, work) = (scene.fresh(), scene.fresh(), key("work", "~"));
    blue.at(9).rows("D2.1").await;
    let rule = "D1.5 (the epoch of another instance does not matter)";
    red.set(&work, true, number(1)).await.holds(rule);
}

async fn a_fenced_operation_changes_nothing(scene: &Scene) {
    let (first, work) = (scene.fresh(), key("work", "~"));
    let second = first.at(2);
    second.set(&work, true, number(2)).await.holds("D2.2");
    fenced_on_everything("D2.2", &first).await;
    second
        .holds_rows("D2.2", &[("work", "~", true, number(2))])
        .await;
    // Nor is the loser's epoch taken down, or the winner's up.
    second.set(&work, true, number(3)).await.holds("D2.2");
    fenced_on_everything("D2.7 (permanent)", &first).await;
}

/// An epoch beyond what a store can keep is either kept or refused.
async fn an_epoch_that_is_refused_fences_nobody(scene: &Scene) {
    let (room, work) = (scene.fresh(), key("work", "~"));
    room.set(&work, true, number(1)).await.holds("D6.1");
    let highest = room.at(u64::MAX);
    match highest.set(&work, true, number(2)).await {
        Ok(()) => fenced_on_everything("D2.2", &room).await,
        Err(StoreError::Invalid(_)) => {
            let rule = "D6.1 (an argument error changes nothing)";
            room.holds_row(rule, &work, Some((true, number(1)))).await;
        }
        Err(other) => holds(
            "D6.1",
            &format!("an epoch is taken or Invalid, and not {other:?}"),
            false,
        ),
    }
}
