//! The row: T2, T3.

use futures_util::FutureExt;
use pinned::TrayError;
use serde_json::{Value, json};

use super::lane::WorkInbox as _;
use super::store::Shelf;
use super::{over, world};
use crate::app::settle;

#[tokio::test(start_paused = true)]
async fn the_doc_has_one_entry_per_field_and_none_for_what_is_as_declared() {
    // T2.1, T2.4, T2.5, T2.6
    let world = world().await;
    let work = world.work().await;
    work.update(|work| {
        work.done.set(4);
        work.choice.set(None);
        work.words.extend(["a", "b", "c"].map(str::to_owned));
        work.words.take_now(1).unwrap();
        work.charge.dispatch("pay".to_owned());
    })
    .unwrap();
    settle().await;
    let doc = r#"{"charge":{"item":"pay","attempt":1},"choice":null,"done":4,"words":{"taken":["a"],"items":["b","c"]}}"#;
    assert_eq!(world.work_row(), (false, doc.to_owned()));
    // T2.4: without items, only what is taken.
    work.update(|work| work.words.take_all()).unwrap();
    settle().await;
    assert!(
        world
            .work_row()
            .1
            .contains(r#""words":{"taken":["a","b","c"]}"#)
    );
    work.update(|work| {
        work.done.reset();
        work.choice.reset();
        work.charge.ack();
        work.words.untake(3).unwrap();
        work.words.clear();
    })
    .unwrap();
    settle().await;
    assert_eq!(world.work_row(), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_is_not_written() {
    // T3.2, T4.2, edge case 14
    let world = world().await;
    let work = world.work().await;
    work.update(|work| work.done.set(4)).unwrap();
    work.set_entry("note", &json!({"a": 1})).unwrap();
    settle().await;
    world.shelf.forget();
    work.update(|work| {
        work.done.set(4);
        work.choice.set(Some(1));
    })
    .unwrap();
    work.set_entry("note", &json!({"a": 1})).unwrap();
    work.remove_entry("nothing").unwrap();
    work.read(|work| *work.done).unwrap();
    // There and back within one segment.
    work.update(|work| {
        work.done.set(5);
        work.done.set(4);
    })
    .unwrap();
    settle().await;
    assert_eq!(world.shelf.log(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_segment_is_one_row_write_with_any_store() {
    // T3.1, T3.4 (docs/decisions.md)
    for shelf in [Shelf::new(), Shelf::without_batches()] {
        let world = over(shelf).await;
        let work = world.work().await;
        settle().await;
        world.shelf.forget();
        let _gate = world.script.hold(1);
        let _ = work
            .admit(|work| {
                work.enqueue(1);
                work.done.set(1);
                work.words.push("a".to_owned());
            })
            .unwrap();
        settle().await;
        // T13.3: the first write that holds the item holds the mark.
        let log = world.shelf.log();
        let admitted = r#"set work/~ marked {"done":1,"queue":[{"n":1}],"words":["a"]}"#;
        assert_eq!(log.first().map(String::as_str), Some(admitted));
        assert_eq!(log.len(), 2, "{log:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn entries_of_ones_own_stand_beside_the_fields() {
    // T3.5, T2.1
    let world = world().await;
    let work = world.work().await;
    assert_eq!(work.entry::<Value>("note").unwrap(), None);
    let mut note = vec![1];
    work.set_entry("note", &note).unwrap();
    // T3.3: what is stored is a copy.
    note.push(2);
    assert_eq!(work.entry::<Vec<u64>>("note").unwrap(), Some(vec![1]));
    work.set_entry("note", &note).unwrap();
    settle().await;
    assert_eq!(world.work_row().1, r#"{"note":[1,2]}"#);
    // Through a restart, and gone in the end.
    world.abort().await;
    let work = world.work().await;
    assert_eq!(work.entry::<Vec<u64>>("note").unwrap(), Some(vec![1, 2]));
    assert!(matches!(
        work.entry::<String>("note"),
        Err(TrayError::Malformed { .. })
    ));
    work.remove_entry("note").unwrap();
    settle().await;
    assert_eq!(world.work_row().1, "{}");
    for name in ["", "~state", "~anything", "queue", "done"] {
        assert!(
            matches!(work.set_entry(name, &1), Err(TrayError::Name(_))),
            "{name}"
        );
        assert!(
            matches!(work.entry::<Value>(name), Err(TrayError::Name(_))),
            "{name}"
        );
        assert!(
            matches!(work.remove_entry(name), Err(TrayError::Name(_))),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_segment_that_fails_or_panics_leaves_nothing() {
    // T13.2 (docs/decisions.md)
    let world = world().await;
    let work = world.work().await;
    settle().await;
    world.shelf.forget();
    assert!(matches!(work.refuse(1), Err(TrayError::Refused(_))));
    let panicked = async {
        work.update(|work| {
            work.enqueue(1);
            work.done.set(9);
            panic!("told to panic");
        })
    };
    assert!(
        std::panic::AssertUnwindSafe(panicked)
            .catch_unwind()
            .await
            .is_err()
    );
    settle().await;
    assert_eq!(world.shelf.log(), [""; 0]);
    let left = work.read(|work| (work.queue.len(), *work.done)).unwrap();
    assert_eq!(left, (0, 0));
    assert!(!work.is_marked().unwrap());
    work.enqueue(2).unwrap().await.unwrap();
    settle().await;
    assert_eq!(world.script.seen(), [(2, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_segment_within_a_segment_of_the_same_tray_is_an_error() {
    let world = world().await;
    let work = world.work().await;
    let again = work.clone();
    let inner = work
        .update(|_| again.update(|work| work.done.set(1)))
        .unwrap();
    assert!(matches!(inner, Err(TrayError::InSegment(_))));
    assert!(matches!(
        work.update(|_| again.read(|_| ())).unwrap(),
        Err(TrayError::InSegment(_))
    ));
    work.update(|work| work.done.set(2)).unwrap();
    assert_eq!(work.read(|work| *work.done).unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_sealed_tray_takes_no_writes_and_says_why() {
    // T3.6, T14.4, T15.5
    let world = world().await;
    let rooms = world.rooms().await;
    let closed = rooms.get_or_create("x").await.unwrap();
    closed.close().unwrap().await;
    assert!(matches!(
        closed.update(|room| room.done.set(1)),
        Err(TrayError::Closed(_))
    ));
    assert!(matches!(
        closed.set_entry("note", &1),
        Err(TrayError::Closed(_))
    ));
    assert_eq!(closed.read(|room| *room.done).unwrap(), 0);
    let deleted = rooms.get("x").await.unwrap();
    let _ = deleted.delete().unwrap();
    deleted.deleted().await;
    assert!(matches!(
        deleted.update(|room| room.done.set(1)),
        Err(TrayError::Deleted(_))
    ));
    assert!(matches!(deleted.enqueue(1), Err(TrayError::Deleted(_))));
}

#[tokio::test(start_paused = true)]
async fn the_entries_of_the_tray_itself_are_absent_when_they_are_empty() {
    // T2.2
    let world = world().await;
    world.script.on(1, |delivery| async move {
        delivery.dispatch.set_state(&json!({"step": 1}))?;
        delivery
            .dispatch
            .enlist(async { Ok::<(), pinned::BoxError>(()) })?
            .await?;
        Err("told to fail".into())
    });
    let rooms = world.rooms().await;
    let room = rooms.get_or_create("x").await.unwrap();
    let _ = room.enqueue(1).unwrap();
    settle().await;
    let doc = r#"{"queue":[{"n":1}],"~attempts":1,"~state":{"step":1}}"#;
    assert_eq!(world.row("rooms", "x"), super::stored(true, doc));
    world.script.hang(1);
    let room = world.rooms().await.get("x").await.unwrap();
    settle().await;
    let _ = room.delete().unwrap();
    settle().await;
    let doc =
        r#"{"queue":[{"n":1}],"~attempts":2,"~inbox":[{"command":"delete"}],"~state":{"step":1}}"#;
    assert_eq!(world.row("rooms", "x"), super::stored(true, doc));
}
