//! Maps of trays: T1.1, T1.8.

use pinned::TrayError;

use super::world;
use crate::app::settle;

#[tokio::test(start_paused = true)]
async fn trays_of_a_map_are_apart_and_a_snapshot_tells_of_the_live_ones() {
    // T1.1, T1.8, T10.1
    let world = world().await;
    let rooms = world.rooms().await;
    let gates = [world.script.hold(1), world.script.hold(2)];
    for (id, n) in [("x", 1), ("y", 2), ("a/b ~", 3)] {
        let _ = rooms.admit(id, |room| room.enqueue(n)).await.unwrap();
    }
    settle().await;
    let mut live: Vec<String> = rooms
        .live()
        .iter()
        .map(|room| room.id().to_owned())
        .collect();
    live.sort();
    assert_eq!(live, ["x", "y"]);
    assert!(!rooms.is_retiring("x") && !rooms.is_retiring("nobody"));
    assert_eq!(world.row("rooms", "a/b ~"), super::stored(false, "{}"));
    for gate in gates {
        gate.open();
    }
    settle().await;
    assert!(rooms.live().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_map_admits_into_a_tray_that_is_closing_by_opening_it_again() {
    // T10.5, T14.2
    let world = world().await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let close = room.close().unwrap();
    let admitted = rooms.admit("x", |room| room.enqueue(1)).await.unwrap();
    close.await;
    admitted.await.unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1]);
}

#[tokio::test(start_paused = true)]
async fn the_same_tray_is_handed_out_to_everybody() {
    // T1.8, T9.1
    let world = world().await;
    let rooms = world.rooms().await;
    let one = rooms.get_or_create("x").await.unwrap();
    let other = rooms.get("x").await.unwrap();
    one.update(|room| room.memory.push(1)).unwrap();
    assert_eq!(other.read(|room| room.memory.clone()).unwrap(), [1]);
    assert_eq!((one.key(), one.id()), (other.key(), "x"));
}

#[tokio::test(start_paused = true)]
async fn an_id_is_as_long_as_every_store_can_keep() {
    // T1.8: it may come from a client, and a store that refuses its row would end the instance.
    let world = world().await;
    let rooms = world.rooms().await;
    let (longest, longer) = ("\u{e9}".repeat(512), "x".repeat(1_025));
    rooms.get_or_create(&longest).await.expect("it fits");
    for refused in [
        rooms.get_or_create(&longer).await.map(drop),
        rooms.get(&longer).await.map(drop),
        rooms.delete(&longer).await.map(drop),
        rooms.admit(&longer, |_| ()).await.map(drop),
    ] {
        assert!(matches!(refused, Err(TrayError::LongId(1_025))));
    }
    settle().await;
    assert!(!world.is_gone());
}
