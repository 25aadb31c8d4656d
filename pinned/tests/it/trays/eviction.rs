//! Winding down: T16.

use std::time::Duration;

use pinned::EvictionRequested;

use super::lane::{DrainInbox as _, WorkInbox as _};
use super::{stored, world};
use crate::app::{pass, settle};

const LATER: Option<Duration> = Some(Duration::from_secs(30));

#[tokio::test(start_paused = true)]
async fn the_item_in_hand_is_finished_and_the_next_one_waits_for_the_next_activation() {
    // T16.1, T16.2
    let world = world().await;
    let gate = world.script.hold(1);
    let work = world.work().await;
    for n in 1..=2 {
        let _ = work.enqueue(n).unwrap();
    }
    settle().await;
    world.host().wind_down("a", LATER);
    settle().await;
    assert!(!world.is_gone());
    gate.open();
    settle().await;
    // No abort, and nothing counted.
    assert!(world.is_gone());
    assert_eq!(world.script.ended(), [1]);
    assert_eq!(
        world.row("work", "~"),
        stored(true, r#"{"queue":[{"n":2}]}"#)
    );
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_finish_is_cut_off_at_the_deadline() {
    // T16.2, T17.4
    let world = world().await;
    let gate = world.script.hold(1);
    let _ = world.work().await.enqueue(1).unwrap();
    settle().await;
    world.host().wind_down("a", LATER);
    pass(29_900).await;
    assert!(!world.is_gone());
    pass(200).await;
    assert!(world.is_gone());
    let doc = r#"{"queue":[{"n":1}],"~attempts":1}"#;
    assert_eq!(world.row("work", "~"), stored(true, doc));
    gate.open();
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (1, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_kick_while_winding_down_marks_and_starts_nothing() {
    // T16.2, edge case 29
    let world = world().await;
    let gate = world.script.hold(1);
    let (work, rooms) = (world.work().await, world.rooms().await);
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = work.enqueue(1).unwrap();
    settle().await;
    world.host().wind_down("a", LATER);
    room.enqueue(2).unwrap().await.unwrap();
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1)]);
    assert_eq!(
        world.row("rooms", "x"),
        stored(true, r#"{"queue":[{"n":2}]}"#)
    );
    gate.open();
    settle().await;
    assert!(world.is_gone());
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_end_as_evicted_and_that_was_no_delivery() {
    // T16.3, edge case 35
    let world = world().await;
    let gate = world.script.hold(1);
    for _ in 0..2 {
        world.script.on(1, |delivery| async move {
            assert_eq!(delivery.dispatch.attempts(), 1);
            let seen = delivery.dispatch.state::<u64>()?.unwrap_or(0);
            delivery.dispatch.set_state(&(seen + 1))?;
            delivery.this.context().eviction_checkpoint().await?;
            Ok(())
        });
    }
    let _ = world.work().await.enqueue(1).unwrap();
    for round in 1..=2 {
        world.lane().await;
        settle().await;
        world.host().wind_down("a", LATER);
        gate.open_once();
        settle().await;
        assert!(world.is_gone());
        let doc = format!(r#"{{"queue":[{{"n":1}}],"~state":{round}}}"#);
        assert_eq!(world.row("work", "~"), stored(true, &doc));
    }
    gate.open();
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (1, 1), (1, 1)]);
    assert_eq!(world.row("work", "~"), stored(false, "{}"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ends_as_evicted_without_cause_stops_until_the_next_kick() {
    // T16.6
    let world = world().await;
    world
        .script
        .on(1, |_| async { Err(EvictionRequested.into()) });
    let work = world.work().await;
    let _ = work.enqueue(1).unwrap();
    settle().await;
    assert!(!world.is_gone());
    assert_eq!(
        world.row("work", "~"),
        stored(true, r#"{"queue":[{"n":1}]}"#)
    );
    assert_eq!(world.script.seen(), [(1, 1)]);
    let _ = work.kick().unwrap();
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (1, 1)]);
    assert_eq!(world.row("work", "~"), stored(false, "{}"));
}

#[tokio::test(start_paused = true)]
async fn a_wind_down_that_is_taken_back_lets_the_work_go_on() {
    // T16.2, H10.5: nobody else would start what stopped for it.
    let world = world().await;
    let gate = world.script.hold(1);
    let work = world.work().await;
    let rooms = world.rooms().await;
    let busy = rooms.get_or_create("busy").await.unwrap();
    let stays = world.script.hold(9);
    let _ = busy.enqueue(9).unwrap();
    for n in 1..=2 {
        let _ = work.enqueue(n).unwrap();
    }
    settle().await;
    let app = world.app.clone();
    let drain = crate::app::spawn(async move { app.worker.drain(None).await });
    settle().await;
    gate.open();
    settle().await;
    assert_eq!(world.script.ended(), [1]);
    world.app.worker.revoke_drain();
    settle().await;
    assert_eq!(world.script.ended(), [1, 2]);
    stays.open();
    drain.abort();
}

#[tokio::test(start_paused = true)]
async fn a_draining_tray_drains_on_through_a_wind_down() {
    // T16.4
    let world = world().await;
    let gate = world.script.hold(1);
    let drain = world.drain().await;
    for n in 1..=3 {
        let _ = drain.enqueue(n).unwrap();
    }
    settle().await;
    world.host().wind_down("a", LATER);
    let _ = drain.enqueue(4).unwrap();
    gate.open();
    settle().await;
    assert!(world.is_gone());
    assert_eq!(world.script.ended(), [1, 2, 3, 4]);
    assert_eq!(world.row("drain", "~"), stored(false, "{}"));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_neither_cuts_a_draining_handler_nor_limits_its_time_and_a_second_cut_ends_it()
{
    // T16.5, edge case 32
    let world = world().await;
    let (gate, second) = (world.script.hold(1), world.script.hold(2));
    let drain = world.drain().await;
    for n in 1..=2 {
        let _ = drain.enqueue(n).unwrap();
    }
    settle().await;
    world.host().wind_down("a", LATER);
    pass(200_000).await;
    assert!(!world.is_gone());
    gate.open();
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1)]);
    assert!(!world.is_gone());
    world.host().abort("a");
    settle().await;
    assert!(world.is_gone());
    let doc = r#"{"queue":[{"n":2}],"~attempts":1}"#;
    assert_eq!(world.row("drain", "~"), stored(true, doc));
    second.open();
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_a_draining_handler_at_once() {
    // T16.5, T18.1: only an eviction's deadline is outlived.
    let world = world().await;
    let _gate = world.script.hold(1);
    let _ = world.drain().await.enqueue(1).unwrap();
    settle().await;
    world.abort().await;
    assert_eq!(world.script.ended(), [0_u64; 0]);
}
