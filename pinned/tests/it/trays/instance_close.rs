//! The close of an instance with trays: T17, T18.

use std::time::Duration;

use pinned::TrayError;

use super::lane::Lane;
use super::lane::{KeptInbox as _, WorkInbox as _};
use super::{stored, world};
use crate::app::{pass, settle};

#[tokio::test(start_paused = true)]
async fn trays_close_before_the_instance_is_torn_down() {
    // T17.1, T17.3
    let world = world().await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let work = world.work().await;
    let kept = world.kept().await.get_or_create("k").await.unwrap();
    world.script.on_hook("first close", |this, _| async move {
        // The namespaces close in the order of their declaration: one is closed, one is still open.
        let drain = this.tray(Lane::DRAIN).await.map(drop);
        assert!(matches!(drain, Err(TrayError::Closing)));
        assert!(this.trays(Lane::KEPT)?.get("k").await.is_ok());
        Ok(())
    });
    world.abort().await;
    let steps = [
        "first open x",
        "second open x",
        "second close x",
        "first close x",
        "teardown",
    ];
    assert_eq!(world.script.hooks(), steps);
    assert!(
        work.is_retiring().unwrap() && kept.is_retiring().unwrap() && room.is_retiring().unwrap()
    );
    assert!(work.enqueue(1).is_err() && kept.enqueue(1).is_err() && room.enqueue(1).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_dispatch_in_flight_is_cut_off_and_comes_again() {
    // T17.4
    let world = world().await;
    world.script.hang(1);
    let rooms = world.rooms().await;
    let _ = rooms.admit("x", |room| room.enqueue(1)).await.unwrap();
    settle().await;
    world.abort().await;
    let doc = r#"{"queue":[{"n":1}],"~attempts":1}"#;
    assert_eq!(world.row("rooms", "x"), stored(true, doc));
    world.lane().await;
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (1, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_retirement_that_is_under_way_is_awaited() {
    // T17.3
    let world = world().await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let gate = pinned_testing::Gate::new();
    let held = gate.clone();
    world.script.on_hook("second close", |_, _| async move {
        held.pass().await;
        Ok(())
    });
    drop(room.close().unwrap());
    gate.reached().await;
    world.host().abort("a");
    pass(1_000).await;
    assert!(!world.is_gone());
    gate.open();
    settle().await;
    assert!(world.is_gone());
    assert_eq!(
        world
            .script
            .hooks()
            .iter()
            .filter(|hook| *hook == "first close x")
            .count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_delete_under_way_is_awaited_and_done() {
    // T17.3, T15.3
    let world = world().await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    settle().await;
    let gate = world.shelf.hold("delete rooms/x");
    let _ = room.delete().unwrap();
    gate.reached().await;
    world.host().wind_down("a", Some(Duration::from_secs(5)));
    settle().await;
    assert!(!world.is_gone());
    gate.open();
    settle().await;
    assert!(world.is_gone());
    assert_eq!(world.row("rooms", "x"), None);
}

#[tokio::test(start_paused = true)]
async fn trays_that_the_setup_opened_are_closed_when_the_activation_fails() {
    // T8.6, T9.7
    let world = world().await;
    let (told, telling) = tokio::sync::oneshot::channel();
    world.script.on_setup(|ctx| async move {
        let rooms = ctx.trays(Lane::ROOMS)?;
        let _ = rooms.admit("x", |room| room.enqueue(1)).await?;
        settle().await;
        let _ = told.send(rooms);
        Ok(())
    });
    world.shelf.fail("list kept");
    assert!(world.host().instance("a").await.is_err());
    settle().await;
    assert!(world.is_gone());
    // Nothing ran before the instance was resident.
    assert_eq!(world.script.seen(), []);
    assert!(telling.await.unwrap().live().is_empty());
    world.shelf.mend();
    world.lane().await;
    settle().await;
    assert_eq!(world.script.ended(), [1]);
}

#[tokio::test(start_paused = true)]
async fn the_setup_of_an_instance_admits_opens_and_closes() {
    // T8.1, T9.7
    let world = world().await;
    world.script.on_setup(|ctx| async move {
        let rooms = ctx.trays(Lane::ROOMS)?;
        rooms.get_or_create("closed").await?.close()?.await;
        let _ = rooms.admit("x", |room| room.enqueue(1)).await?;
        let _ = ctx.tray(Lane::WORK).await?.enqueue(2)?;
        Ok(())
    });
    world.lane().await;
    settle().await;
    let mut ended = world.script.ended();
    ended.sort_unstable();
    assert_eq!(ended, [1, 2]);
    assert_eq!(world.row("rooms", "closed"), stored(false, "{}"));
}
