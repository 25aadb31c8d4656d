//! What is left of an opening, a delivery, an item or a row that came to nothing.

use pinned::{EvictionRequested, HostOptions, PinnedWorker};

use super::lane::{Job, Lane, WorkInbox as _};
use super::script::Script;
use super::store::Shelf;
use super::{over, put, stored, world};
use crate::app::{App, settle, spawn};

// D15.3
#[tokio::test(start_paused = true)]
async fn an_opening_reads_what_one_that_failed_has_enlisted() {
    let world = world().await;
    let rooms = world.rooms().await;
    let (told, telling) = tokio::sync::oneshot::channel();
    world.script.on_hook("first open", |_, room| async move {
        let _ = told.send(room.enqueue(1)?);
        Err("told to fail".into())
    });
    rooms.get_or_create("x").await.unwrap_err();
    let room = rooms.get_or_create("x").await.unwrap();
    telling.await.unwrap().await.expect("durable");
    let _ = room.enqueue(2).unwrap();
    settle().await;
    assert_eq!(world.script.seen(), [(1, 1), (2, 1)]);
}

// D15.3: the caller goes away while a flush is on its way.
#[tokio::test(start_paused = true)]
async fn an_opening_reads_what_one_that_was_dropped_has_enlisted() {
    let shelf = Shelf::new();
    put(&shelf, "rooms", "x", false, r#"{"words":["old"]}"#).await;
    let world = over(shelf).await;
    let rooms = world.rooms().await;
    world.script.on_hook("first open", |_, room| async move {
        room.update(|room| room.words.push("new".to_owned()))?;
        std::future::pending().await
    });
    let gate = world.shelf.hold("set work/~");
    world.work().await.update(|work| work.done.set(1)).unwrap();
    gate.reached().await;
    let opening = {
        let rooms = world.rooms().await;
        spawn(async move { rooms.get("x").await.map(drop) })
    };
    settle().await;
    // The caller goes away: a client that hangs up.
    opening.abort();
    settle().await;
    let getting = spawn(async move { rooms.get("x").await });
    settle().await;
    gate.open();
    let room = getting.await.unwrap().unwrap();
    settle().await;
    assert!(world.row("rooms", "x").unwrap().1.contains("new"));
    room.update(|room| room.done.set(1)).unwrap();
    settle().await;
    assert_eq!(
        world.row("rooms", "x"),
        stored(false, r#"{"done":1,"words":["old","new"]}"#)
    );
}

// T8.4, T9.1
#[tokio::test(start_paused = true)]
async fn an_activation_reads_a_row_anew_whose_tray_was_open_since_it_was_listed() {
    let shelf = Shelf::new();
    put(&shelf, "rooms", "x", true, r#"{"queue":[{"n":1}]}"#).await;
    put(&shelf, "rooms", "y", true, r#"{"queue":[{"n":2}]}"#).await;
    let world = over(shelf).await;
    world.script.on_hook("first open", |this, _| async move {
        let y = this.trays(Lane::ROOMS)?.get("y").await?;
        y.enqueue(3)?.await?;
        y.close()?.await;
        Ok(())
    });
    world.lane().await;
    settle().await;
    let mut seen = world.script.seen();
    seen.sort_unstable();
    assert_eq!(seen, [(1, 1), (2, 1), (3, 1)]);
}

// T6.5, T16.3
#[tokio::test(start_paused = true)]
async fn what_was_taken_by_a_delivery_that_was_none_comes_back() {
    let world = world().await;
    world.script.on(1, |delivery| async move {
        delivery.dispatch.update(|work| work.words.take_now(2))??;
        Err(EvictionRequested.into())
    });
    let (told, telling) = tokio::sync::oneshot::channel();
    world.script.on(1, |delivery| async move {
        let taken = delivery.dispatch.update(|work| work.words.take_all())?;
        let _ = told.send(taken);
        Ok(())
    });
    let work = world.work().await;
    work.update(|work| work.words.extend(["a", "b", "c"].map(str::to_owned)))
        .unwrap();
    let _ = work.enqueue(1).unwrap();
    settle().await;
    let _ = work.kick().unwrap();
    settle().await;
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
    assert_eq!(telling.await.unwrap(), ["a", "b", "c"]);
}

// T6.5, T16.3
#[tokio::test(start_paused = true)]
async fn what_was_taken_comes_back_when_a_wind_down_is_taken_back() {
    let world = world().await;
    let gate = world.script.hold(1);
    world.script.on(1, |delivery| async move {
        delivery.dispatch.update(|work| work.words.take_now(2))??;
        delivery.this.context().eviction_checkpoint().await?;
        Ok(())
    });
    let (told, telling) = tokio::sync::oneshot::channel();
    world.script.on(1, |delivery| async move {
        let taken = delivery.dispatch.update(|work| work.words.take_all())?;
        let _ = told.send(taken);
        Ok(())
    });
    let work = world.work().await;
    let busy = world.rooms().await.get_or_create("busy").await.unwrap();
    let stays = world.script.hold(9);
    let _ = busy.enqueue(9).unwrap();
    work.update(|work| work.words.extend(["a", "b", "c"].map(str::to_owned)))
        .unwrap();
    let _ = work.enqueue(1).unwrap();
    settle().await;
    let app = world.app.clone();
    let drain = spawn(async move { app.worker.drain(None).await });
    settle().await;
    gate.open();
    settle().await;
    world.app.worker.revoke_drain();
    settle().await;
    let taken = telling.await.unwrap();
    stays.open();
    drain.abort();
    assert_eq!(taken, ["a", "b", "c"]);
}

// T16.6
#[tokio::test(start_paused = true)]
async fn a_wind_down_that_is_taken_back_before_the_handler_ends_redelivers() {
    let world = world().await;
    let gate = world.script.hold(1);
    let late = pinned_testing::Gate::new();
    let wait = late.clone();
    world.script.on(1, |delivery| async move {
        let asked = delivery.this.context().eviction_checkpoint().await;
        wait.pass().await;
        asked?;
        Ok(())
    });
    let work = world.work().await;
    let busy = world.rooms().await.get_or_create("busy").await.unwrap();
    let stays = world.script.hold(9);
    let _ = busy.enqueue(9).unwrap();
    let _ = work.enqueue(1).unwrap();
    settle().await;
    let app = world.app.clone();
    let drain = spawn(async move { app.worker.drain(None).await });
    settle().await;
    gate.open();
    settle().await;
    world.app.worker.revoke_drain();
    settle().await;
    late.open();
    settle().await;
    let ended = world.script.ended();
    stays.open();
    drain.abort();
    assert_eq!(ended, [1]);
}

// T15.2
#[tokio::test(start_paused = true)]
async fn a_delete_needs_no_slot() {
    let (shelf, script) = (Shelf::new(), Script::default());
    let builder = PinnedWorker::builder()
        .host_with::<Lane>(HostOptions::new().namespace("/lanes"))
        .max_concurrent_dispatches(1)
        .state(script.clone())
        .store(shelf.clone());
    let app = App::start(builder).await;
    let host = app.worker.hosted::<Lane>().unwrap();
    let _gate = script.hold(1);
    let (a, b) = (
        host.instance("a").await.unwrap(),
        host.instance("b").await.unwrap(),
    );
    let _ = b.tray(Lane::WORK).await.unwrap().enqueue(1).unwrap();
    settle().await;
    let room = a
        .trays(Lane::ROOMS)
        .unwrap()
        .get_or_create("x")
        .await
        .unwrap();
    let _ = room.enqueue(2).unwrap();
    settle().await;
    let _ = room.delete().unwrap();
    settle().await;
    assert!(super::row(&shelf, "rooms", "x").is_none());
}

// T15.4
#[tokio::test(start_paused = true)]
async fn a_delete_that_cannot_list_chunks_ends_the_instance_and_the_next_one_deletes() {
    let world = world().await;
    let rooms = world.rooms().await;
    let gate = world.script.hold(0);
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = room
        .admit(|room| room.queue.extend((0..200).map(|n| Job { n })))
        .unwrap();
    settle().await;
    world.shelf.fail("list rooms~queue");
    let _ = room.delete().unwrap();
    gate.open();
    room.deleted().await;
    world.shelf.mend();
    // Nobody writes to a row that is about to be deleted.
    let admitted = rooms.admit("x", |room| room.enqueue(777)).await;
    assert!(admitted.is_err());
    settle().await;
    assert!(world.is_gone());
    world.lane().await;
    settle().await;
    assert_eq!(world.row("rooms", "x"), None);
}

// T13.10
#[tokio::test(start_paused = true)]
async fn what_an_item_dispatched_that_was_taken_away_is_settled() {
    let shelf = Shelf::new();
    let doc = r#"{"queue":[{"n":1}],"~attempts":1,"~dispatch":[{"key":"k","target":["rooms","t"],"outcome":"admitted","cleaned":false}]}"#;
    put(&shelf, "rooms", "s", true, doc).await;
    put(&shelf, "rooms", "t", false, r#"{"~ignore":["k"]}"#).await;
    let world = over(shelf).await;
    world.script.on_hook("first open", |_, room| async move {
        room.update(|room| room.queue.clear())?;
        Ok(())
    });
    world.lane().await;
    settle().await;
    let rows = (world.row("rooms", "s"), world.row("rooms", "t"));
    assert_eq!(
        rows,
        (stored(false, "{}"), stored(false, "{}")),
        "the key is let go of"
    );
}

// T9.5, T15.4
#[tokio::test(start_paused = true)]
async fn a_delete_takes_the_chunks_of_another_version_along() {
    let shelf = Shelf::new();
    let chunk = format!(r#"{{"items":[{}]}}"#, vec![r#"{"n":5}"#; 32].join(","));
    put(&shelf, "rooms~queue", "x/0000000000000000", false, &chunk).await;
    put(
        &shelf,
        "rooms",
        "x",
        true,
        r#"{"queue":{"items":[{"n":1}],"chunks":[0,1]},"~v":7}"#,
    )
    .await;
    let world = over(shelf).await;
    world.lane().await;
    settle().await;
    let rooms = world.rooms().await;
    let room = rooms.get("x").await.unwrap();
    let _ = room.delete().unwrap();
    room.deleted().await;
    settle().await;
    assert!(
        world.keys().iter().all(|key| !key.starts_with("rooms")),
        "{:?}",
        world.keys()
    );
}

// T13.10
#[tokio::test(start_paused = true)]
async fn a_target_that_is_declared_no_more_counts_as_cleaned() {
    let shelf = Shelf::new();
    let doc = r#"{"queue":[{"n":1}],"~attempts":1,"~dispatch":[{"key":"k","target":["gone","t"],"outcome":"admitted","cleaned":false}]}"#;
    put(&shelf, "work", "~", true, doc).await;
    let world = over(shelf).await;
    world.lane().await;
    settle().await;
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
}

// D14.5: it waits for nothing that was enlisted after it.
#[tokio::test(start_paused = true)]
async fn an_effect_of_the_log_opens_a_tray_whatever_was_given_up_behind_it() {
    let world = world().await;
    let lane = world.lane().await;
    let rooms = world.rooms().await;
    let gate = world.shelf.hold("set work/~");
    world.work().await.update(|work| work.done.set(1)).unwrap();
    gate.reached().await;
    let frontier = lane.context().frontier().unwrap();
    let audit = world.rooms().await;
    let audited = frontier
        .enlist(async move { audit.get_or_create("audit").await.map(drop) })
        .unwrap();
    world
        .script
        .on_hook("first open", |_, _| std::future::pending());
    let opening = spawn(async move { rooms.get_or_create("x").await.map(drop) });
    settle().await;
    opening.abort();
    settle().await;
    gate.open();
    audited.await.expect("it ended");
}

// T15.2, T16.3
#[tokio::test(start_paused = true)]
async fn a_delete_comes_right_after_a_delivery_that_was_none() {
    let world = world().await;
    let gate = world.script.hold(1);
    world
        .script
        .on(1, |_| async { Err(EvictionRequested.into()) });
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = room.enqueue(1).unwrap();
    settle().await;
    let _ = room.delete().unwrap();
    gate.open();
    settle().await;
    assert_eq!(world.row("rooms", "x"), None);
}

// T8.4: nobody else would look after what it has to do.
#[tokio::test(start_paused = true)]
async fn an_activation_opens_a_tray_again_that_is_closing() {
    let shelf = Shelf::new();
    put(&shelf, "rooms", "x", true, r#"{"queue":[{"n":1}]}"#).await;
    put(&shelf, "rooms", "y", true, r#"{"queue":[{"n":2}]}"#).await;
    let world = over(shelf).await;
    world.script.on_hook("first open", |this, _| async move {
        let y = this.trays(Lane::ROOMS)?.get("y").await?;
        let _ = y.enqueue(3)?;
        drop(y.close()?);
        Ok(())
    });
    world.lane().await;
    settle().await;
    let mut seen = world.script.seen();
    seen.sort_unstable();
    assert_eq!(seen, [(1, 1), (2, 1), (3, 1)]);
}
