//! Snapshots and ops for async readers.

use futures_util::{FutureExt, StreamExt};
use pinned::Observable;
use pinned::observable::{Change, Changes, tree};
use serde_json::json;

use super::{json, place, replace};

fn now(changes: &mut Changes) -> Option<Option<Change>> {
    changes.next().now_or_never()
}

#[tokio::test]
async fn the_ops_start_exactly_at_the_snapshot() {
    // O5.7
    let count = json(json!(0));
    count.set(json!(1)).unwrap();
    let (snapshot, mut changes) = count.watch(8);
    assert_eq!(snapshot, 1);
    assert_eq!(now(&mut changes), None);
    count.set(json!(2)).unwrap();
    assert_eq!(changes.next().await, Some(Change::Op(replace(place![], 2))));
}

#[tokio::test]
async fn a_snapshot_taken_inside_a_subscriber_contains_the_op_that_is_on_its_way() {
    // O5.3
    let count = json(json!(0));
    let weak = count.downgrade();
    let (sender, receiver) = std::sync::mpsc::channel();
    let once = count.subscribe(move |_| sender.send(weak.upgrade().unwrap().watch(8)).unwrap());
    count.set(json!(1)).unwrap();
    drop(once);
    let (snapshot, mut changes) = receiver.recv().unwrap();
    assert_eq!(snapshot, 1);
    count.set(json!(2)).unwrap();
    assert_eq!(changes.next().await, Some(Change::Op(replace(place![], 2))));
}

#[tokio::test]
async fn a_slow_reader_gets_what_fits_then_the_gap_then_a_new_start() {
    let count = json(json!(0));
    let (_, mut changes) = count.watch(2);
    for n in 1..=5 {
        count.set(json!(n)).unwrap();
    }
    assert_eq!(changes.next().await, Some(Change::Op(replace(place![], 1))));
    assert_eq!(changes.next().await, Some(Change::Op(replace(place![], 2))));
    assert_eq!(changes.next().await, Some(Change::Lagged));
    assert_eq!(changes.next().await, None);
    assert_eq!(changes.restart(), Some(json!(5)));
    count.set(json!(6)).unwrap();
    assert_eq!(changes.next().await, Some(Change::Op(replace(place![], 6))));
}

#[tokio::test]
async fn a_reader_that_waits_is_woken() {
    let count = json(json!(0));
    let (_, changes) = count.watch(4);
    let reader = tokio::task::LocalSet::new();
    let seen = reader.spawn_local(changes.take(2).collect::<Vec<_>>());
    reader.run_until(tokio::task::yield_now()).await;
    count.set(json!(1)).unwrap();
    count.set(json!(2)).unwrap();
    let seen = reader.run_until(seen).await.unwrap();
    assert_eq!(seen, [1, 2].map(|n| Change::Op(replace(place![], n))));
}

#[tokio::test]
async fn the_stream_ends_with_the_observable() {
    let child = json(json!(0));
    let page = Observable::from_tree(tree!([&child])).unwrap();
    let (_, mut changes) = child.watch(4);
    drop(child);
    page.at(0).set(1).unwrap();
    assert_eq!(changes.next().await, None);
    assert_eq!(changes.restart(), None);
}
