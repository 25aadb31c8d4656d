//! Parking: T11.3 to T11.5.

use pinned::TrayError;

use super::lane::WorkInbox as _;
use super::world;
use crate::app::settle;

const PARKED: &str = r#"{"queue":[{"n":1}],"~attempts":2,"~parked":true}"#;

#[tokio::test(start_paused = true)]
async fn an_item_is_parked_after_its_last_delivery_until_it_is_unparked() {
    // T11.3, T11.4, T11.5, edge case 11
    let world = world().await;
    world.script.fail(1);
    world.script.fail(1);
    let _ = world.work().await.enqueue(1).unwrap();
    for _ in 0..2 {
        settle().await;
        assert!(world.is_gone());
        world.lane().await;
    }
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (1, 2)]);
    assert_eq!(world.work_row(), (true, PARKED.to_owned()));
    // Across restarts.
    world.abort().await;
    let work = world.work().await;
    settle().await;
    assert!(work.is_parked().unwrap());
    assert_eq!(
        (work.attempts().unwrap(), world.script.seen().len()),
        (2, 2)
    );
    // Admissions still append.
    let _ = work.enqueue(2).unwrap();
    settle().await;
    assert_eq!(
        world.work_row(),
        (
            true,
            r#"{"queue":[{"n":1},{"n":2}],"~attempts":2,"~parked":true}"#.to_owned()
        )
    );
    work.unpark().unwrap().await.unwrap();
    settle().await;
    assert_eq!(world.script.seen()[2..], [(1, 1), (2, 1)]);
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
    assert!(matches!(work.unpark(), Err(TrayError::NotParked(_))));
}

#[tokio::test(start_paused = true)]
async fn the_state_of_the_item_survives_the_parking() {
    // T11.5
    let world = world().await;
    for _ in 0..2 {
        world.script.on(1, |delivery| async move {
            delivery.dispatch.set_state(&delivery.dispatch.attempts())?;
            delivery
                .dispatch
                .enlist(async { Ok::<(), pinned::BoxError>(()) })?
                .await?;
            Err("told to fail".into())
        });
    }
    world.script.on(1, |delivery| async move {
        assert_eq!(delivery.dispatch.state::<u64>()?, Some(2));
        Ok(())
    });
    let _ = world.work().await.enqueue(1).unwrap();
    for _ in 0..2 {
        settle().await;
        world.lane().await;
    }
    settle().await;
    let work = world.work().await;
    assert!(work.is_parked().unwrap());
    let _ = work.unpark().unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1]);
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_parked_tray_is_deleted_and_a_retiring_one_is_not_unparked() {
    // T11.4, T11.5, T15.2
    let world = world().await;
    world.script.fail(1);
    world.script.fail(1);
    let rooms = world.rooms().await;
    let _ = rooms.admit("x", |room| room.enqueue(1)).await.unwrap();
    for _ in 0..2 {
        settle().await;
        world.lane().await;
    }
    settle().await;
    let room = world.rooms().await.get("x").await.unwrap();
    assert!(room.is_parked().unwrap());
    let _ = room.delete().unwrap();
    room.deleted().await;
    assert_eq!(world.row("rooms", "x"), None);
    assert!(matches!(room.unpark(), Err(TrayError::Deleted(_))));
    assert_eq!(world.script.seen().len(), 2);
}
