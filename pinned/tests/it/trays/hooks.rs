//! What runs when a tray opens and closes: T9.7, T9.9, T9.10.

use parking_lot::Mutex;
use pinned::{
    BoxError, Dispatch, Instance, PersistentQueue, PinnedWorker, Tray, TrayError, TrayHandle,
    TrayLifecycle, pinned_api,
};

use super::lane::WorkInbox as _;
use super::lane::{Lane, Work};
use super::store::Shelf;
use super::{over, put, stored, world};
use crate::app::{App, settle, spawn};

#[tokio::test(start_paused = true)]
async fn hooks_run_in_their_order_and_backwards_at_the_end() {
    // T9.7, T9.9, edge case 28
    let world = world().await;
    let rooms = world.rooms().await;
    let _ = rooms.get_or_create("x").await.unwrap().enqueue(1).unwrap();
    settle().await;
    let order = [
        "first open x",
        "second open x",
        "second close x",
        "first close x",
    ];
    assert_eq!(world.script.hooks(), order);
}

#[tokio::test(start_paused = true)]
async fn hooks_of_the_opening_may_write_and_those_of_the_end_may_not() {
    // T9.7, T14.4, T3.6, edge case 28
    let world = world().await;
    world.script.on_hook("first open", |this, room| async move {
        assert_eq!(this.id(), "a");
        room.update(|room| room.done.set(7))?;
        Ok(())
    });
    world.script.on_hook("second close", |_, room| async move {
        assert_eq!(room.read(|room| *room.done)?, 7);
        let refused = room.update(|room| room.done.set(8));
        assert!(matches!(refused, Err(TrayError::Closed(_))));
        // It may fail, or panic: the others run all the same.
        refused.map_err(Into::into)
    });
    world
        .script
        .on_hook("first close", |_, _| async { panic!("told to panic") });
    let rooms = world.rooms().await;
    rooms
        .get_or_create("x")
        .await
        .unwrap()
        .close()
        .unwrap()
        .await;
    assert_eq!(world.row("rooms", "x"), stored(false, r#"{"done":7}"#));
    assert_eq!(world.script.hooks().len(), 4);
    assert!(!world.is_gone());
}

#[tokio::test(start_paused = true)]
async fn a_failed_hook_fails_the_opening_and_what_ran_is_taken_down() {
    // T9.10, edge case 34
    let world = world().await;
    let leaked = std::sync::Arc::new(Mutex::new(None::<TrayHandle<Work>>));
    let slot = leaked.clone();
    world.script.on_hook("second open", |_, room| async move {
        *slot.lock() = Some(room);
        Err("told to fail".into())
    });
    world.script.on_hook("first close", |_, room| async move {
        assert!(matches!(
            room.update(|room| room.done.set(1)),
            Err(TrayError::Closed(_))
        ));
        Ok(())
    });
    let rooms = world.rooms().await;
    let failed = rooms.get_or_create("x").await;
    assert!(matches!(failed, Err(TrayError::Setup { .. })), "{failed:?}");
    assert_eq!(
        world.script.hooks(),
        ["first open x", "second open x", "first close x"]
    );
    settle().await;
    assert_eq!(world.row("rooms", "x"), stored(false, "{}"));
    assert!(rooms.live().is_empty());
    // A handle that a hook kept writes nothing beside the next opening.
    let room = rooms.get("x").await.unwrap();
    assert!(room.is_restored());
    let leaked = leaked.lock().take().unwrap();
    assert!(matches!(leaked.enqueue(1), Err(TrayError::Closed(_))));
    assert!(matches!(
        leaked.update(|room| room.done.set(1)),
        Err(TrayError::Closed(_))
    ));
    leaked.deleted().await;
    let _ = room.enqueue(2).unwrap();
    settle().await;
    assert_eq!(world.script.seen(), [(2, 1)]);
    world.abort().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_of_the_opening_admits_is_handled_once_the_tray_is_open() {
    // T9.7, T10.5
    let world = world().await;
    world.script.on_hook("first open", |_, room| async move {
        let _ = room.enqueue(1)?;
        settle().await;
        Ok(())
    });
    let rooms = world.rooms().await;
    rooms.get_or_create("x").await.unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1]);
    let order = [
        "first open x",
        "second open x",
        "second close x",
        "first close x",
    ];
    assert_eq!(world.script.hooks(), order);
    // It has gone to rest in order, and opens again.
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = room.enqueue(2).unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_of_the_opening_may_delete_or_close_its_tray() {
    // T14.1, T15.1
    let world = world().await;
    let rooms = world.rooms().await;
    world.script.on_hook("first open", |_, room| async move {
        let _ = room.delete()?;
        settle().await;
        Ok(())
    });
    let room = rooms.get_or_create("x").await.unwrap();
    room.deleted().await;
    assert_eq!(world.row("rooms", "x"), None);
    world.script.on_hook("first open", |_, room| async move {
        drop(room.close()?);
        settle().await;
        Ok(())
    });
    let room = rooms.get_or_create("x").await.unwrap();
    room.deleted().await;
    assert_eq!(world.row("rooms", "x"), stored(false, "{}"));
    // A close whose opening fails has nothing left to wait for.
    world.script.on_hook("first open", |_, room| async move {
        drop(room.close()?);
        Err("told to fail".into())
    });
    assert!(rooms.get("x").await.is_err());
    let room = rooms.get("x").await.unwrap();
    let _ = room.enqueue(1).unwrap();
    settle().await;
    assert_eq!(world.script.ended(), [1]);
    world.abort().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_take_turns_of_their_instance() {
    // T9.7
    let shelf = Shelf::new();
    put(&shelf, "rooms", "x", true, r#"{"queue":[{"n":1}]}"#).await;
    let world = over(shelf).await;
    for hook in ["first open", "second close"] {
        world.script.on_hook(hook, |this, _| async move {
            drop(this.write().await?);
            drop(this.read().await?);
            Ok(())
        });
    }
    world.lane().await;
    settle().await;
    assert_eq!(world.script.ended(), [1]);
    assert_eq!(world.script.hooks().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_hook_of_the_end_that_wants_a_turn_of_a_closing_instance_is_refused() {
    // T17.1: a close waits for it, so it must not wait for what the close has ended.
    let world = world().await;
    let (told, telling) = tokio::sync::oneshot::channel();
    world.script.on_hook("second close", |this, _| async move {
        let refused = this.write().await.map(drop);
        let _ = told.send(refused.is_err());
        Ok(())
    });
    world.rooms().await.get_or_create("x").await.unwrap();
    world.abort().await;
    assert!(telling.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_opening_in_the_hooks_of_another_tray_is_no_deadlock() {
    // T9.1: each id has a lock of its own.
    let world = world().await;
    world.script.on_hook("first open", |this, _| async move {
        this.trays(Lane::ROOMS)?.get_or_create("y").await?;
        Ok(())
    });
    let rooms = world.rooms().await;
    let both = spawn(async move { rooms.get_or_create("x").await.map(drop) });
    settle().await;
    assert!(both.is_finished());
    both.await.unwrap().unwrap();
}

static STEPS: Mutex<Vec<&str>> = Mutex::new(Vec::new());

#[derive(Tray)]
#[tray(lifecycle)]
struct Cared {
    queue: PersistentQueue<u64>,
}

impl TrayLifecycle for Cared {
    async fn opened(tray: TrayHandle<Self>) -> Result<(), BoxError> {
        assert_eq!(tray.read(|cared| cared.queue.len())?, 1);
        STEPS.lock().push("opened");
        Ok(())
    }

    async fn closed(tray: TrayHandle<Self>) -> Result<(), BoxError> {
        assert!(tray.update(|cared| cared.queue.push(2)).is_err());
        STEPS.lock().push("closed");
        Ok(())
    }
}

#[derive(Default)]
struct Carer;

#[pinned_api("/lanes")]
impl Carer {
    #[tray(map, on_open = Self::hook_opened, on_close = Self::hook_closed)]
    async fn rooms(_: Instance<Self>, _: u64, _: Dispatch<Cared>) {
        STEPS.lock().push("handled");
    }

    async fn hook_opened(_: Instance<Self>, _: TrayHandle<Cared>) {
        STEPS.lock().push("hook opened");
    }

    async fn hook_closed(_: Instance<Self>, _: TrayHandle<Cared>) {
        STEPS.lock().push("hook closed");
    }
}

#[tokio::test(start_paused = true)]
async fn the_lifecycle_of_a_tray_is_around_its_hooks() {
    // T9.7, T9.9
    let shelf = Shelf::new();
    put(&shelf, "rooms", "x", true, r#"{"queue":[1]}"#).await;
    let worker = PinnedWorker::builder()
        .host::<Carer>("/lanes")
        .store(shelf.clone());
    let app = App::start(worker).await;
    let host = app.worker.hosted::<Carer>().unwrap();
    host.instance("a").await.unwrap();
    settle().await;
    let steps = STEPS.lock().clone();
    assert_eq!(
        steps,
        ["opened", "hook opened", "handled", "hook closed", "closed"]
    );
}
