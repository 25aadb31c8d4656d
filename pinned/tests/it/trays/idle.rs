//! Idleness with durable work: T10.1, D17.1, D17.2.

use std::time::Duration;

use super::lane::IDLE;
use super::lane::{KeptInbox as _, WorkInbox as _};
use super::store::Shelf;
use super::{over, stored, world};
use crate::app::{pass, settle};

fn idle() -> u64 {
    u64::try_from(IDLE.as_millis()).expect("short") + 2_000
}

#[tokio::test(start_paused = true)]
async fn a_handler_at_work_keeps_its_instance() {
    // T10.1. The timeout of a dispatch is a minute; a parked tray keeps nobody.
    let world = world().await;
    let gate = world.script.hold(1);
    let kept = world.kept().await.get_or_create("k").await.unwrap();
    let _ = kept.enqueue(1).unwrap();
    pass(3 * idle()).await;
    assert!(!world.is_gone());
    gate.open();
    settle().await;
    pass(idle()).await;
    assert!(world.is_gone());
    assert_eq!(world.host().evictions(), 1);
    assert_eq!(world.row("kept", "k"), stored(false, "{}"));
}

#[tokio::test(start_paused = true)]
async fn a_write_on_its_way_keeps_its_instance_and_no_longer() {
    // D17.1, edge case 31
    let world = world().await;
    let work = world.work().await;
    settle().await;
    let gate = world.shelf.hold("set work/~");
    work.update(|work| work.done.set(1)).unwrap();
    pass(3 * idle()).await;
    assert!(!world.is_gone());
    gate.open();
    settle().await;
    pass(idle()).await;
    assert!(world.is_gone());
    assert_eq!(world.work_row(), (false, r#"{"done":1}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_wind_down_waits_for_the_log_in_its_teardown() {
    // D17.2, D17.4, T17.2
    let world = world().await;
    let work = world.work().await;
    settle().await;
    let gate = world.shelf.hold("set work/~");
    work.update(|work| work.done.set(1)).unwrap();
    gate.reached().await;
    world.host().wind_down("a", Some(Duration::from_secs(30)));
    settle().await;
    // It closes already, and waits for the write.
    assert!(!world.is_gone());
    assert!(work.update(|work| work.done.set(2)).is_err());
    pass(60_000).await;
    assert!(!world.is_gone());
    gate.open();
    settle().await;
    assert!(world.is_gone());
    assert_eq!(world.work_row(), (false, r#"{"done":1}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_abort_takes_the_flusher_along() {
    // D17.3, T17.2
    let world = world().await;
    let work = world.work().await;
    settle().await;
    let gate = world.shelf.hold("set work/~");
    let _held = world.script.hold(1);
    let receipt = work.enqueue(1).unwrap();
    gate.reached().await;
    world.abort().await;
    assert!(receipt.await.is_err());
    // A later activation's reads and writes proceed.
    gate.open();
    world.work().await.enqueue(2).unwrap().await.unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [2]);
}

#[tokio::test(start_paused = true)]
async fn what_is_admitted_while_the_instance_closes_is_refused_or_comes_again() {
    // T10.5, T17.3: in local mode the worker finds the marked row by itself.
    let world = over(Shelf::new().searched()).await;
    let work = world.work().await;
    settle().await;
    let gate = world.shelf.hold("set work/~");
    work.update(|work| work.done.set(1)).unwrap();
    gate.reached().await;
    world.host().wind_down("a", None);
    assert!(work.enqueue(1).is_ok() || world.script.seen().is_empty());
    gate.open();
    pass(10_000).await;
    let rest = super::row(&world.shelf, "work", "~").expect("a row");
    assert!(!rest.0, "{rest:?}");
}
