//! Fields within a tray: T4 to T7 as far as rows and restarts show them; the fields alone are tested beside them.

use super::lane::WorkInbox as _;
use super::store::Shelf;
use super::{over, put, stored, world};
use crate::app::settle;

#[tokio::test(start_paused = true)]
async fn values_come_back_as_they_were_stored() {
    // T4.4, T2.6, edge case 14
    let world = world().await;
    let work = world.work().await;
    assert_eq!(work.read(|work| *work.choice).unwrap(), Some(1));
    work.update(|work| work.choice.set(None)).unwrap();
    settle().await;
    assert_eq!(world.work_row().1, r#"{"choice":null}"#);
    world.abort().await;
    let work = world.work().await;
    assert_eq!(work.read(|work| *work.choice).unwrap(), None);
    work.update(|work| work.choice.set(Some(1))).unwrap();
    settle().await;
    assert_eq!(world.work_row().1, "{}");
    world.abort().await;
    let work = world.work().await;
    assert_eq!(work.read(|work| *work.choice).unwrap(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn every_state_of_the_row_on_the_way_reads_as_one_that_was() {
    // T5.5, edge cases 14 and 18: each row that was ever written, opened anew.
    let world = over(Shelf::without_batches()).await;
    let work = world.work().await;
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    work.update(|work| work.words.extend(words(&["a", "b", "c"])))
        .unwrap();
    work.update(|work| work.words.take_now(2).unwrap()).unwrap();
    work.update(|work| work.words.assign(words(&["x", "y"])))
        .unwrap();
    work.update(|work| work.words.clear()).unwrap();
    work.update(|work| work.words.untake(2).unwrap()).unwrap();
    work.update(|work| work.choice.set(None)).unwrap();
    work.update(|work| work.choice.reset()).unwrap();
    settle().await;
    let expected: [&[&str]; 8] = [
        &[],
        &["a", "b", "c"],
        &["a", "b", "c"],
        &["a", "b", "x", "y"],
        &["a", "b"],
        &["a", "b"],
        &["a", "b"],
        &["a", "b"],
    ];
    let writes: Vec<String> = world.shelf.log();
    let writes = writes
        .iter()
        .filter_map(|op| op.strip_prefix("set work/~ unmarked "));
    let writes: Vec<&str> = writes.collect();
    assert_eq!(writes.len(), expected.len(), "{writes:?}");
    for (doc, expected) in writes.into_iter().zip(expected) {
        let shelf = Shelf::new();
        put(&shelf, "work", "~", false, doc).await;
        let world = over(shelf).await;
        let work = world.work().await;
        let read = work
            .read(|work| work.words.iter().cloned().collect::<Vec<_>>())
            .unwrap();
        assert_eq!(read, words(expected), "{doc}");
        settle().await;
        // T6.5: what was taken stands in the row as queued again.
        let plain = world.row("work", "~").unwrap().1;
        assert!(!plain.contains("taken"), "{plain}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_on_another_thread_may_ask_for_the_tray_that_is_being_changed() {
    // O7.2, T5.6: the field is mounted in an observable that others change too.
    #[derive(serde::Serialize)]
    struct Shown {
        done: pinned::observable::ObservableView<u64>,
        by: u64,
    }
    let world = world().await;
    let work = world.work().await;
    let done = work.update(|work| work.done.observe()).unwrap().unwrap();
    let shown = pinned::Observable::new(Shown { done, by: 0 }).unwrap();
    let (entered, is_within) = std::sync::mpsc::channel();
    let (changing, is_changing) = std::sync::mpsc::channel();
    let is_changing = parking_lot::Mutex::new(is_changing);
    let seen = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let subscriber = {
        let (work, seen) = (work.clone(), std::sync::Arc::clone(&seen));
        move |op: &pinned::observable::Op| {
            if op.path == ["by".into()] {
                entered.send(()).unwrap();
                is_changing.lock().recv().unwrap();
            }
            let done = work.read(|work| *work.done).unwrap();
            seen.lock().push((op.value.clone(), done));
        }
    };
    let _subscription = shown.subscribe(subscriber);
    let other = std::thread::spawn(move || shown.at("by").set(1).unwrap());
    is_within.recv().unwrap();
    work.update(|work| {
        work.done.set(7);
        // It asks for the lock that is held here.
        changing.send(()).unwrap();
    })
    .unwrap();
    other.join().unwrap();
    let by = Some(serde_json::json!(1));
    let done = Some(serde_json::json!(7));
    assert_eq!(*seen.lock(), [(by, 7), (done, 7)]);
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_for_an_item_comes_back_with_it_and_goes_with_its_acknowledgement() {
    // T6.1, T6.4, T6.5, T6.6, T6.7, edge case 15
    let world = world().await;
    world.script.on(1, |delivery| async move {
        let taken = delivery
            .dispatch
            .update(|work| work.words.take_now(2).unwrap())?;
        assert_eq!(taken, ["a", "b"]);
        delivery
            .dispatch
            .enlist(async { Ok::<(), pinned::BoxError>(()) })?
            .await?;
        Err("told to fail".into())
    });
    world.script.on(1, |delivery| async move {
        assert_eq!(delivery.dispatch.attempts(), 2);
        let taken = delivery.dispatch.update(|work| work.words.take_all())?;
        assert_eq!(taken, ["a", "b"]);
        Ok(())
    });
    let work = world.work().await;
    work.update(|work| work.words.extend(["a", "b"].map(str::to_owned)))
        .unwrap();
    let _ = work.enqueue(1).unwrap();
    settle().await;
    let doc = r#"{"queue":[{"n":1}],"words":{"taken":["a","b"]},"~attempts":1}"#;
    assert_eq!(world.row("work", "~"), stored(true, doc));
    world.lane().await;
    settle().await;
    assert_eq!(world.script.ended(), [1]);
    assert_eq!(world.row("work", "~"), stored(false, "{}"));
    world.abort().await;
    let work = world.work().await;
    assert_eq!(work.read(|work| work.words.len()).unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_put_back_leaves_the_row_as_it_was() {
    // T6.3, edge case 17
    let world = world().await;
    let work = world.work().await;
    work.update(|work| work.words.extend(["a", "b", "c"].map(str::to_owned)))
        .unwrap();
    settle().await;
    let before = world.work_row();
    work.update(|work| work.words.take_now(3).unwrap()).unwrap();
    work.update(|work| work.words.untake(1).unwrap()).unwrap();
    settle().await;
    assert_eq!(
        world.work_row().1,
        r#"{"words":{"taken":["a","b"],"items":["c"]}}"#
    );
    work.update(|work| work.words.untake(2).unwrap()).unwrap();
    settle().await;
    assert_eq!(world.work_row(), before);
    // T6.1, T6.3: more than there is.
    work.update(|work| {
        assert!(work.words.take_now(4).is_err() && work.words.untake(1).is_err());
        assert_eq!(work.words.take_now(0), Ok(vec![]));
        work.words.untake(0).unwrap();
    })
    .unwrap();
    settle().await;
    assert_eq!(world.work_row(), before);
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_changed_at_either_end_and_in_place() {
    // T5.1, T5.2, T5.3, T5.4
    let world = world().await;
    let work = world.work().await;
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    work.update(|work| {
        assert_eq!(work.words.peek(), None);
        assert_eq!(work.words.pop_front(), None);
        work.words.extend(words(&["b", "c", "d", "e"]));
        work.words.push_front("a".to_owned()).unwrap();
        work.words.remove(2);
        work.words.set(1, "B".to_owned());
        work.words.edit(2, |word| word.push('!'));
        work.words.pop_back();
    })
    .unwrap();
    settle().await;
    assert_eq!(world.work_row().1, r#"{"words":["a","B","d!"]}"#);
    work.update(|work| {
        work.words.take_now(1).unwrap();
        assert!(work.words.push_front("z".to_owned()).is_err());
        work.words.assign(words(&["y"]));
    })
    .unwrap();
    settle().await;
    assert_eq!(
        world.work_row().1,
        r#"{"words":{"taken":["a"],"items":["y"]}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn an_outbox_counts_over_crashes() {
    // T7.1, T7.2, T2.5
    let world = world().await;
    let work = world.work().await;
    let pay = || "pay".to_owned();
    assert_eq!(work.update(|work| work.charge.dispatch(pay())).unwrap(), 1);
    settle().await;
    world.abort().await;
    let work = world.work().await;
    assert_eq!(work.update(|work| work.charge.dispatch(pay())).unwrap(), 2);
    settle().await;
    assert_eq!(
        world.work_row().1,
        r#"{"charge":{"item":"pay","attempt":2}}"#
    );
    assert_eq!(
        work.update(|work| work.charge.dispatch("other".to_owned()))
            .unwrap(),
        1
    );
    work.update(|work| work.charge.ack()).unwrap();
    settle().await;
    assert_eq!(world.work_row().1, "{}");
    assert_eq!(work.read(|work| work.charge.attempt()).unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn fields_are_watched_where_others_mount_them_and_change_through_themselves_alone() {
    // T4.1, T5.6, T5.7
    let world = world().await;
    let work = world.work().await;
    let view = work.update(|work| work.words.observe()).unwrap().unwrap();
    work.update(|work| work.words.push("a".to_owned())).unwrap();
    assert_eq!(view.get().unwrap(), ["a"]);
    assert!(view.at(0).set("b".to_owned()).is_err());
    settle().await;
    assert_eq!(world.work_row().1, r#"{"words":["a"]}"#);
}
