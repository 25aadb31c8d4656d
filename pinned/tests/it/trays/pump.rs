//! The pump: T10, T11.1 to T11.3, T11.7, T18.

use std::sync::Arc;

use pinned::{BoxError, HostOptions, PinnedWorker};

use super::lane::{self, Lane};
use super::lane::{DrainInbox as _, WorkInbox as _};
use super::script::Script;
use super::store::Shelf;
use super::{over, put, stored, world};
use crate::app::{App, pass, settle};

#[tokio::test(start_paused = true)]
async fn what_is_admitted_is_handled_in_order_and_leaves_nothing_behind() {
    // T10.1, T10.2, T10.4, T11.7
    let world = world().await;
    let work = world.work().await;
    let gate = world.script.hold(1);
    for n in 1..=3 {
        work.enqueue(n).unwrap().await.unwrap();
    }
    settle().await;
    // One dispatch at a time; the count is in the row.
    assert_eq!(world.script.seen(), [(1, 1)]);
    assert_eq!(
        world.work_row(),
        (
            true,
            r#"{"queue":[{"n":1},{"n":2},{"n":3}],"~attempts":1}"#.to_owned()
        )
    );
    gate.open();
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(world.script.ended(), [1, 2, 3]);
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
    assert!(!work.is_marked().unwrap());
}

#[tokio::test(start_paused = true)]
async fn trays_run_beside_each_other() {
    // T10.1
    let world = world().await;
    let gates = [1, 2, 3].map(|n| world.script.hold(n));
    let _ = world.work().await.enqueue(1).unwrap();
    let _ = world.drain().await.enqueue(2).unwrap();
    let rooms = world.rooms().await;
    let _ = rooms.admit("x", |room| room.enqueue(3)).await.unwrap();
    settle().await;
    assert_eq!(world.script.seen().len(), 3);
    for gate in gates {
        gate.open();
    }
    settle().await;
    assert_eq!(world.script.ended().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_admission_without_waiting_for_its_receipt_is_flushed_and_keeps_the_instance() {
    // T10.1, edge case 31
    let world = world().await;
    let gate = world.script.hold(1);
    let work = world.work().await;
    drop(work.enqueue(1).unwrap());
    pass(30_000).await;
    assert_eq!(world.work_row().1, r#"{"queue":[{"n":1}],"~attempts":1}"#);
    drop(gate);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_is_one_write() {
    // T10.6, T10.3, edge case 16
    for shelf in [Shelf::new(), Shelf::without_batches()] {
        let world = over(shelf).await;
        let gate = world.script.hold(1);
        world.script.on(1, |delivery| async move {
            delivery.dispatch.set_state("half")?;
            delivery.dispatch.update(|work| work.words.take_all())?;
            Ok(())
        });
        let work = world.work().await;
        work.update(|work| work.words.push("a".to_owned())).unwrap();
        work.enqueue(1).unwrap().await.unwrap();
        settle().await;
        world.shelf.forget();
        gate.open();
        settle().await;
        let log = world.shelf.log();
        let last = r#"set work/~ unmarked {}"#;
        assert_eq!(log.last().map(String::as_str), Some(last), "{log:?}");
        // Whatever was written before it holds all of it, or nothing of it is gone.
        for write in &log[..log.len() - 1] {
            if write.contains("~attempts") {
                assert!(write.contains(r#""queue":[{"n":1}]"#), "{write}");
            } else {
                assert_eq!(write, "set work/~ marked {}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_handler_aborts_the_instance_and_the_item_comes_again() {
    // T18.1, T18.2, T11.2, T11.3
    let world = world().await;
    world.script.fail(2);
    let work = world.work().await;
    for n in 1..=3 {
        let _ = work.enqueue(n).unwrap();
    }
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1)]);
    assert!(world.is_gone());
    assert_eq!(
        world.work_row(),
        (
            true,
            r#"{"queue":[{"n":2},{"n":3}],"~attempts":1}"#.to_owned()
        )
    );
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1), (2, 2), (3, 1)]);
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_handler_is_a_failure_like_any_other() {
    // T18.1
    let world = world().await;
    world.script.on(1, |_| async { panic!("told to panic") });
    let _ = world.work().await.enqueue(1).unwrap();
    settle().await;
    assert!(world.is_gone());
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (1, 2)]);
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn everything_survives_a_crash_and_comes_again_as_attempt_2() {
    // Edge case 1
    let world = world().await;
    let gate = world.script.hold(1);
    let work = world.work().await;
    for n in 1..=3 {
        work.enqueue(n).unwrap().await.unwrap();
    }
    settle().await;
    world.abort().await;
    gate.open();
    assert_eq!(
        world.work_row(),
        (
            true,
            r#"{"queue":[{"n":1},{"n":2},{"n":3}],"~attempts":1}"#.to_owned()
        )
    );
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (1, 2), (2, 1), (3, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_count_that_never_reached_the_store_is_not_counted() {
    // T11.2, T11.3
    let world = world().await;
    let work = world.work().await;
    let _gate = world.script.hold(1);
    world
        .shelf
        .fail(r#"set work/~ marked {"queue":[{"n":1}],"~attempts":1}"#);
    work.enqueue(1).unwrap().await.unwrap();
    settle().await;
    assert!(world.is_gone());
    world.shelf.mend();
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_admission_at_the_end_of_the_work_is_in_time() {
    // T10.5, T10.10, edge case 10
    let world = world().await;
    let work = world.work().await;
    let gate = world.shelf.hold("set work/~ unmarked {}");
    let _ = work.enqueue(1).unwrap();
    gate.reached().await;
    let second = world.script.hold(2);
    let admitted = work.enqueue(2).unwrap();
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1)]);
    assert!(world.work_row().0);
    gate.open();
    admitted.await.unwrap();
    settle().await;
    assert_eq!(
        world.work_row(),
        (true, r#"{"queue":[{"n":2}],"~attempts":1}"#.to_owned())
    );
    second.open();
    settle().await;
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_mark_without_work_heals_itself() {
    // T10.8
    let shelf = Shelf::new();
    put(&shelf, "work", "~", true, r#"{"done":3}"#).await;
    put(&shelf, "rooms", "x", true, "{}").await;
    let world = over(shelf).await;
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), []);
    assert_eq!(world.work_row(), (false, r#"{"done":3}"#.to_owned()));
    assert_eq!(world.row("rooms", "x"), stored(false, "{}"));
    assert!(world.rooms().await.live().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_always_open_tray_looks_for_work_without_a_mark_and_others_do_not() {
    // T10.9
    let shelf = Shelf::new();
    for (tray, id, n) in [("work", "~", 1), ("kept", "k", 2), ("rooms", "x", 3)] {
        put(
            &shelf,
            tray,
            id,
            false,
            &format!(r#"{{"queue":[{{"n":{n}}}]}}"#),
        )
        .await;
    }
    let world = over(shelf).await;
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1)]);
    let rooms = world.rooms().await;
    let room = rooms.get("x").await.unwrap();
    settle().await;
    assert_eq!(world.script.seen().len(), 2);
    let _ = room.kick().unwrap();
    settle().await;
    assert_eq!(world.script.seen().last(), Some(&(3, 1)));
}

#[tokio::test(start_paused = true)]
async fn fields_do_not_keep_a_tray_marked() {
    // T10.7: the mark follows the items alone.
    let world = world().await;
    let work = world.work().await;
    work.update(|work| work.words.push("a".to_owned())).unwrap();
    let _ = work.enqueue(1).unwrap();
    settle().await;
    assert_eq!(world.work_row(), (false, r#"{"words":["a"]}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_waited_for_and_waiting_counts_nothing() {
    // T11.1, edge case 24
    let (shelf, script) = (Shelf::new(), Script::default());
    let builder = PinnedWorker::builder()
        .host_with::<Lane>(lane::options())
        .max_concurrent_dispatches(1)
        .state(script.clone())
        .store(shelf.clone());
    let app = App::start(builder).await;
    let host = app.worker.hosted::<Lane>().unwrap();
    let gate = script.hold(1);
    let (a, b) = (
        host.instance("a").await.unwrap(),
        host.instance("b").await.unwrap(),
    );
    let _ = a.tray(Lane::WORK).await.unwrap().enqueue(1).unwrap();
    settle().await;
    let second = b.tray(Lane::WORK).await.unwrap();
    let _ = second.enqueue(2).unwrap();
    settle().await;
    assert_eq!(script.seen(), [(1, 1)]);
    assert_eq!(
        (second.attempts().unwrap(), second.is_marked().unwrap()),
        (0, true)
    );
    gate.open();
    settle().await;
    assert_eq!(script.ended(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_or_a_wind_down_ends_the_wait_for_a_slot() {
    // T11.1, T16.2, T17.4
    for wind_down in [false, true] {
        end_the_wait_for_a_slot(wind_down).await;
    }
}

async fn end_the_wait_for_a_slot(wind_down: bool) {
    let (shelf, script) = (Shelf::new(), Script::default());
    let builder = PinnedWorker::builder()
        .host_with::<Lane>(HostOptions::new().namespace("/lanes"))
        .max_concurrent_dispatches(1)
        .state(script.clone())
        .store(shelf.clone());
    let app = App::start(builder).await;
    let host = app.worker.hosted::<Lane>().unwrap();
    let gate = script.hold(1);
    for (id, n) in [("b", 1), ("a", 2)] {
        let lane = host.instance(id).await.unwrap();
        let _ = lane.tray(Lane::WORK).await.unwrap().enqueue(n).unwrap();
        settle().await;
    }
    match wind_down {
        true => host.wind_down("a", Some(std::time::Duration::from_secs(3_600))),
        false => host.abort("a"),
    }
    settle().await;
    assert_eq!(host.len(), 1);
    assert_eq!(
        super::row(&shelf, "work", "~"),
        stored(true, r#"{"queue":[{"n":2}]}"#)
    );
    drop(gate);
}

#[tokio::test(start_paused = true)]
async fn what_is_done_leaves_no_trace_however_much_it_was() {
    // Edge case 26
    let world = world().await;
    let work = world.work().await;
    let mut sizes = Vec::new();
    for n in 1..=30 {
        let _ = work.enqueue(n).unwrap();
        settle().await;
        sizes.push(world.work_row().1.len());
    }
    assert_eq!(sizes[2], sizes[29]);
    // And a hundred at a time, which stand in rows of their own meanwhile.
    for n in 100..200 {
        let _ = work.enqueue(n).unwrap();
    }
    settle().await;
    assert_eq!(world.script.seen().len(), 130);
    assert_eq!(
        world
            .shelf
            .rows
            .rows(&pinned::durability::InstanceKey::new("/lanes", "a"))
            .len(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_log_aborts_and_the_work_goes_on_elsewhere() {
    // T18.4
    let world = world().await;
    let work = world.work().await;
    world.shelf.fail("set work/~ marked");
    let admitted = work.enqueue(1).unwrap();
    assert!(admitted.await.is_err());
    settle().await;
    assert!(world.is_gone());
    assert!(work.enqueue(2).is_err());
    world.shelf.mend();
    let work = world.work().await;
    work.enqueue(3).unwrap().await.unwrap();
    settle().await;
    assert_eq!(world.script.ended().last(), Some(&3));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_given_up_is_dropped_and_its_item_counts_as_handled() {
    // T12.5
    let world = world().await;
    world.script.hang(1);
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    world.script.on(2, |delivery| async move {
        let _held = held;
        delivery.dispatch.cancelled().await;
        // Edge case 30: it takes the cancellation and returns as ever.
        Ok::<(), BoxError>(())
    });
    let work = world.work().await;
    work.cancel_dispatch().unwrap();
    let _ = work.enqueue(1).unwrap();
    let _ = work.enqueue(2).unwrap();
    settle().await;
    work.cancel_dispatch().unwrap();
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1)]);
    assert_eq!(world.script.ended(), [0_u64; 0]);
    work.cancel_dispatch().unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [2]);
    assert_eq!(Arc::strong_count(&alive), 1);
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
}
