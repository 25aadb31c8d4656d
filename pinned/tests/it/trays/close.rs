//! Closing a tray: T14, T15.7.

use pinned::TrayError;

use super::lane::{KeptInbox as _, WorkInbox as _};
use super::{stored, world};
use crate::app::{settle, spawn};

#[tokio::test(start_paused = true)]
async fn a_closed_tray_keeps_its_row_and_opens_again() {
    // T14.1, T14.2, T14.5
    let world = world().await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    room.update(|room| room.done.set(3)).unwrap();
    let (first, second) = (room.close().unwrap(), room.close().unwrap());
    assert!(matches!(room.enqueue(1), Err(TrayError::Closed(_))));
    assert!(matches!(room.kick(), Err(TrayError::Closed(_))));
    assert!(room.is_retiring().unwrap() && rooms.is_retiring("x"));
    first.await;
    second.await;
    assert!(rooms.live().is_empty() && !rooms.is_retiring("x"));
    assert_eq!(world.row("rooms", "x"), stored(false, r#"{"done":3}"#));
    let again = rooms.get("x").await.unwrap();
    assert!(again.is_restored());
    assert_eq!(again.read(|room| *room.done).unwrap(), 3);
    // The old handle is of the old tray.
    assert!(matches!(room.enqueue(1), Err(TrayError::Closed(_))));
    room.close().unwrap().await;
}

#[tokio::test(start_paused = true)]
async fn a_tray_that_is_always_open_is_not_closed() {
    // T14.1, T1.3
    let world = world().await;
    let work = world.work().await;
    assert!(matches!(
        work.close().map(drop),
        Err(TrayError::AlwaysOpen(_))
    ));
    let kept = world.kept().await.get_or_create("k").await.unwrap();
    assert!(matches!(
        kept.close().map(drop),
        Err(TrayError::AlwaysOpen(_))
    ));
    let _ = kept.enqueue(1).unwrap();
    settle().await;
    // And does not close by itself when its work is done.
    assert_eq!(world.kept().await.live().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_at_work_is_cut_off_and_its_item_comes_again() {
    // T14.3
    let world = world().await;
    world.script.hang(1);
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = room.enqueue(1).unwrap();
    settle().await;
    room.close().unwrap().await;
    let doc = r#"{"queue":[{"n":1}],"~attempts":1}"#;
    assert_eq!(world.row("rooms", "x"), stored(true, doc));
    // It is marked, so getting it is enough.
    rooms.get("x").await.unwrap();
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (1, 2)]);
    assert_eq!(world.row("rooms", "x"), stored(false, "{}"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_close_its_own_tray() {
    // T14.1, T14.5
    let world = world().await;
    world.script.on(1, |delivery| async move {
        drop(delivery.dispatch.close()?);
        std::future::pending().await
    });
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = room.enqueue(1).unwrap();
    room.deleted().await;
    assert!(rooms.live().is_empty());
    assert!(world.row("rooms", "x").unwrap().0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ends_as_its_tray_closes_is_acknowledged() {
    // T14.3: its own end comes first.
    let world = world().await;
    world.script.on(1, |delivery| async move {
        drop(delivery.dispatch.close()?);
        delivery.dispatch.update(|room| room.done.set(1))?;
        Ok(())
    });
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = room.enqueue(1).unwrap();
    let _ = room.enqueue(2).unwrap();
    room.deleted().await;
    let doc = r#"{"done":1,"queue":[{"n":2}]}"#;
    assert_eq!(world.row("rooms", "x"), stored(true, doc));
}

#[tokio::test(start_paused = true)]
async fn a_close_waits_for_what_was_enlisted_and_the_next_opening_for_the_close() {
    // T14.1, T9.1
    let world = world().await;
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    settle().await;
    let gate = world.shelf.hold("set rooms/x");
    room.update(|room| room.done.set(1)).unwrap();
    let close = spawn(room.close().unwrap());
    let getting = {
        let rooms = world.rooms().await;
        spawn(async move {
            rooms
                .get("x")
                .await
                .unwrap()
                .read(|room| *room.done)
                .unwrap()
        })
    };
    settle().await;
    assert!(!close.is_finished() && !getting.is_finished());
    gate.open();
    close.await.unwrap();
    assert_eq!(getting.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_close_while_the_settlement_waits_lets_the_acknowledgement_land() {
    // T14.3, edge cases 6 and 7
    for delete_first in [false, true] {
        let world = world().await;
        let rooms = world.rooms().await;
        drop(
            rooms
                .get_or_create("target")
                .await
                .unwrap()
                .close()
                .unwrap(),
        );
        world.script.on(1, |delivery| async move {
            let rooms = delivery.this.trays(super::Lane::ROOMS)?;
            let target = rooms.get_or_create("target").await?;
            delivery
                .dispatch
                .admit_once("k", &target, |room| room.words.clear())?;
            // It has gone to rest by the time of the settlement.
            target.close()?.await;
            Ok(())
        });
        let room = rooms.get_or_create("x").await.unwrap();
        let gate = world.shelf.hold("get rooms/target");
        gate.open_once();
        let _ = room.enqueue(1).unwrap();
        let _ = room.enqueue(2).unwrap();
        gate.reached().await;
        gate.reached().await;
        if delete_first {
            room.delete().unwrap().await.unwrap();
        }
        let close = spawn(room.close().unwrap());
        settle().await;
        assert!(!close.is_finished());
        assert!(matches!(room.enqueue(3), Err(TrayError::Closed(_))));
        gate.open();
        close.await.unwrap();
        assert!(!world.is_gone());
        let row = world.row("rooms", "x");
        if delete_first {
            // T15.7
            let doc = r#"{"queue":[{"n":2}],"~inbox":[{"command":"delete"}]}"#;
            assert_eq!(row, stored(true, doc));
            world.abort().await;
            world.lane().await;
            settle().await;
            assert_eq!(world.row("rooms", "x"), None);
        } else {
            assert_eq!(row, stored(true, r#"{"queue":[{"n":2}]}"#));
        }
        assert_eq!(world.script.seen(), [(1, 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn two_trays_that_settle_into_each_other_close_both() {
    // T13.10, T14.3
    let world = world().await;
    let rooms = world.rooms().await;
    let (x, y) = (
        rooms.get_or_create("x").await.unwrap(),
        rooms.get_or_create("y").await.unwrap(),
    );
    let gate = pinned_testing::Gate::new();
    for (n, other) in [(1, y.clone()), (2, x.clone())] {
        let gate = gate.clone();
        world.script.on(n, move |delivery| async move {
            delivery
                .dispatch
                .admit_once(n, &other, |room| room.enqueue(n + 10))?;
            gate.pass().await;
            drop(delivery.dispatch.close()?);
            Ok(())
        });
    }
    let _ = x.enqueue(1).unwrap();
    let _ = y.enqueue(2).unwrap();
    gate.reached().await;
    gate.reached().await;
    gate.open();
    x.deleted().await;
    y.deleted().await;
    let of = |n: u64, other: u64| format!(r#"{{"queue":[{{"n":{n},"~admit":{other}}}]}}"#);
    assert_eq!(world.row("rooms", "x"), stored(true, &of(12, 2)));
    assert_eq!(world.row("rooms", "y"), stored(true, &of(11, 1)));
}

#[tokio::test(start_paused = true)]
async fn an_abort_does_not_wait_for_a_settlement_that_the_store_holds_up() {
    // T17.4: the item comes again, and the ledger makes it exact.
    let world = world().await;
    let rooms = world.rooms().await;
    world.script.on(1, |delivery| async move {
        let rooms = delivery.this.trays(super::Lane::ROOMS)?;
        let target = rooms.get_or_create("target").await?;
        delivery
            .dispatch
            .admit_once("k", &target, |room| room.words.push("a".to_owned()))
            .unwrap_err();
        target.close()?.await;
        Ok(())
    });
    // A queue of strings takes no keyed appends (T13.7), so the target is only closed: admit an object instead.
    world.script.on(2, |delivery| async move {
        let rooms = delivery.this.trays(super::Lane::ROOMS)?;
        let target = rooms.get_or_create("target").await?;
        delivery
            .dispatch
            .admit_once("k", &target, |room| room.enqueue(50))?;
        target.close()?.await;
        Ok(())
    });
    let hold = world.script.hold(50);
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = room.enqueue(1).unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1]);
    let room = rooms.get_or_create("x").await.unwrap();
    let gate = world.shelf.hold("get rooms/target");
    gate.open_once();
    let _ = room.enqueue(2).unwrap();
    gate.reached().await;
    gate.reached().await;
    world.abort().await;
    gate.open();
    hold.open();
    world.lane().await;
    settle().await;
    assert_eq!(
        world.script.seen().iter().filter(|(n, _)| *n == 2).count(),
        2
    );
    assert_eq!(world.script.ended().iter().filter(|n| **n == 50).count(), 1);
}
