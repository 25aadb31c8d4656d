//! Deleting a tray: T15.

use pinned::TrayError;
use pinned::durability::InstanceKey;

use super::lane::WorkInbox as _;
use super::store::Shelf;
use super::{over, put, stored, world};
use crate::app::settle;

#[tokio::test(start_paused = true)]
async fn the_item_in_hand_is_finished_and_later_ones_are_discarded() {
    // T15.1, T15.2, T15.3, T15.5, edge cases 2 and 3
    let world = world().await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let gate = world.script.hold(1);
    for n in 1..=2 {
        let _ = room.enqueue(n).unwrap();
    }
    settle().await;
    room.delete().unwrap().await.unwrap();
    // Repeating it is harmless.
    let _ = room.delete().unwrap();
    let doc = r#"{"queue":[{"n":1},{"n":2}],"~attempts":1,"~inbox":[{"command":"delete"}]}"#;
    assert_eq!(world.row("rooms", "x"), stored(true, doc));
    gate.open();
    room.deleted().await;
    assert_eq!(world.script.seen(), [(1, 1)]);
    assert_eq!(world.script.ended(), [1]);
    assert_eq!(world.row("rooms", "x"), None);
    assert!(matches!(room.enqueue(3), Err(TrayError::Deleted(_))));
    assert!(matches!(room.close().map(drop), Err(TrayError::Deleted(_))));
    let _ = room.delete().unwrap();
    assert!(matches!(rooms.get("x").await, Err(TrayError::NotFound(_))));
    let fresh = rooms.get_or_create("x").await.unwrap();
    assert!(!fresh.is_restored());
    let _ = fresh.enqueue(4).unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1, 4]);
    // Nothing of it is left in the way of the close.
    world.abort().await;
}

#[tokio::test(start_paused = true)]
async fn a_row_with_the_command_is_deleted_by_the_next_activation_before_anything_runs() {
    // T15.4, edge case 4
    let shelf = Shelf::new();
    let doc = r#"{"queue":[{"n":1}],"~inbox":[{"command":"delete"}]}"#;
    put(&shelf, "rooms", "x", true, doc).await;
    // A single tray too: its row is made again by the activation after this one.
    put(&shelf, "work", "~", true, doc).await;
    let world = over(shelf).await;
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), []);
    assert_eq!(
        (world.row("rooms", "x"), world.row("work", "~")),
        (None, None)
    );
    world.work().await.enqueue(2).unwrap().await.unwrap();
    settle().await;
    assert_eq!(world.script.seen(), [(2, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_right_before_the_row_goes_leaves_it_to_the_next_activation() {
    // T15.4, edge case 5
    let world = over(Shelf::without_batches()).await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    settle().await;
    world.shelf.fail("delete rooms/x");
    let _ = room.delete().unwrap();
    settle().await;
    assert!(world.is_gone());
    let doc = r#"{"~inbox":[{"command":"delete"}]}"#;
    assert_eq!(world.row("rooms", "x"), stored(true, doc));
    world.shelf.mend();
    world.lane().await;
    settle().await;
    assert_eq!(world.row("rooms", "x"), None);
}

#[tokio::test(start_paused = true)]
async fn a_resting_tray_is_opened_to_delete_it() {
    // T15.6
    let world = world().await;
    let rooms = world.rooms().await;
    assert!(matches!(
        rooms.delete("x").await,
        Err(TrayError::NotFound(_))
    ));
    drop(rooms.get_or_create("x").await.unwrap().close().unwrap());
    rooms.delete("x").await.unwrap().await.unwrap();
    settle().await;
    assert_eq!(world.row("rooms", "x"), None);
    assert!(rooms.live().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_close_that_began_first_refuses_a_delete_and_the_map_deletes_after_it() {
    // T15.1, T15.6
    let world = world().await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let close = room.close().unwrap();
    assert!(matches!(room.delete(), Err(TrayError::Closed(_))));
    let deleting = rooms.delete("x").await.unwrap();
    close.await;
    deleting.await.unwrap();
    settle().await;
    assert_eq!(world.row("rooms", "x"), None);
}

#[tokio::test(start_paused = true)]
async fn whoever_makes_the_tray_anew_waits_until_the_old_row_is_gone() {
    // T9.1, T15.5
    let world = world().await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let gate = world.shelf.hold("delete rooms/x");
    let _ = room.delete().unwrap();
    gate.reached().await;
    assert!(rooms.is_retiring("x"));
    let admission = {
        let rooms = world.rooms().await;
        crate::app::spawn(async move { rooms.admit("x", |room| room.enqueue(1)).await.map(drop) })
    };
    settle().await;
    assert!(!admission.is_finished());
    gate.open();
    admission.await.unwrap().unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1]);
    assert_eq!(world.row("rooms", "x"), stored(false, "{}"));
}

#[tokio::test(start_paused = true)]
async fn a_long_queue_goes_with_its_tray() {
    // T15.3 (docs/decisions.md, "Long queues")
    let world = world().await;
    let rooms = world.rooms().await;
    let gate = world.script.hold(0);
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = room
        .admit(|room| room.queue.extend((0..200).map(|n| super::lane::Job { n })))
        .unwrap();
    settle().await;
    let rows = || {
        world
            .shelf
            .rows
            .rows(&pinned::durability::InstanceKey::new("/lanes", "a"))
            .len()
    };
    assert!(rows() > 5);
    let _ = room.delete().unwrap();
    gate.open();
    room.deleted().await;
    assert_eq!(rows(), 2);
    assert_eq!(world.script.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_queue_goes_with_its_tray_and_takes_nothing_of_another_along() {
    // T15.4: the ids begin alike, and `/` is a character like any other.
    let world = world().await;
    let rooms = world.rooms().await;
    let ids = ["x", "x/y", "x/0000000000000000", "x/", "xy"];
    for id in ids {
        let room = rooms.get_or_create(id).await.unwrap();
        let words = (0..200).map(|n| n.to_string());
        room.update(|room| room.words.extend(words)).unwrap();
    }
    settle().await;
    let room = rooms.get_or_create("x").await.unwrap();
    // Of its chunks some are on their way to the store yet.
    let gate = world.shelf.hold("set rooms~words/x/");
    room.update(|room| room.words.extend((0..200).map(|n| n.to_string())))
        .unwrap();
    let _ = room.delete().unwrap();
    settle().await;
    gate.open();
    room.deleted().await;

    assert!(world.keys().iter().all(|row| {
        let of_x = row.strip_prefix("rooms~words/x/");
        of_x.is_none_or(|rest| rest.contains('/'))
    }));
    world.abort().await;
    let rooms = world.rooms().await;
    for id in &ids[1..] {
        let room = rooms.get(id).await.expect(id);
        assert_eq!(room.read(|room| room.words.len()).unwrap(), 200, "{id}");
    }
    assert!(matches!(rooms.get("x").await, Err(TrayError::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn what_a_long_queue_keeps_in_rows_of_its_own_goes_with_its_tray_alone() {
    // T15.4
    let world = world().await;
    let rooms = world.rooms().await;
    let (gate, _other) = (world.script.hold(1), world.script.hold(1_001));
    for (id, first) in [("x", 1), ("x/y", 1_001)] {
        let room = rooms.get_or_create(id).await.unwrap();
        for n in first..first + 200 {
            let _ = room.enqueue(n).unwrap();
        }
    }
    settle().await;
    let chunks = || {
        let rows = world.shelf.rows.rows(&InstanceKey::new("/lanes", "a"));
        let of_queues = rows
            .into_iter()
            .filter(|row| &*row.key.tray_ns == "rooms~queue");
        of_queues
            .map(|row| row.key.tray_id.to_string())
            .collect::<Vec<_>>()
    };
    let (of_neighbour, of_this): (Vec<_>, Vec<_>) =
        chunks().into_iter().partition(|id| id.starts_with("x/y/"));
    assert!(!of_neighbour.is_empty() && !of_this.is_empty());
    let room = rooms.get("x").await.unwrap();
    room.delete().unwrap().await.unwrap();
    gate.open();
    room.deleted().await;
    assert_eq!(chunks(), of_neighbour);
    world.abort().await;
    let neighbour = world.rooms().await.get("x/y").await.unwrap();
    assert_eq!(neighbour.read(|work| work.queue.len()).unwrap(), 200);
}
