//! Keys that are held, and what absorbs an admission (T13.8, T13.12, T13.13).

use pinned::Outcome;
use serde_json::{Value, json};

use super::admitting::{Outcomes, admit, push, relays};
use super::{Hub, Job, world};
use crate::app::{pass, settle};

#[tokio::test(start_paused = true)]
async fn a_key_that_another_item_holds_absorbs_until_it_is_let_go_of() {
    // T13.8, T13.9, T13.12
    let world = world().await;
    let held = world.script.hold_sinks();
    let (outcomes, gate) = relays(&world.script, |_| json!("shared"));
    world.send(1).await;
    let others = world.hub().await.trays(Hub::RELAYS).expect("declared");
    let second = others.admit("b", |relay| relay.queue.push(Job { n: 2 }));
    second.await.expect("open").await.expect("durable");
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted, Outcome::Absorbed]);
    gate.open();
    settle().await;
    held.open();
    settle().await;
    assert_eq!(world.sunk().await, [1]);
    // After the holder's acknowledgement it admits again.
    world.send(3).await;
    settle().await;
    assert_eq!(world.sunk().await, [1, 3]);
    assert_eq!(outcomes.all()[2..], [Outcome::Admitted]);
}

#[tokio::test(start_paused = true)]
async fn the_second_item_may_use_the_key_of_the_first_once_that_is_acknowledged() {
    // T13.12, T13.13, edge case 21
    let world = world().await;
    let (outcomes, gate) = relays(&world.script, |_| json!("same"));
    gate.open();
    for n in [1, 2] {
        world.send(n).await;
    }
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted; 2]);
    assert_eq!(world.sunk().await, [1, 2]);
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
    assert_eq!(world.row("sink"), (false, r#"{"log":[1,2]}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_second_item_with_the_key_of_one_that_is_still_queued_is_absorbed_by_its_entry() {
    // T13.8, T13.12: the tag stays with the entry, and the key is a promise about the queue.
    let world = world().await;
    let held = world.script.hold_sinks();
    let (outcomes, gate) = relays(&world.script, |_| json!("same"));
    gate.open();
    for n in [1, 2] {
        world.send(n).await;
    }
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted, Outcome::Absorbed]);
    held.open();
    settle().await;
    assert_eq!(world.sunk().await, [1]);
}

#[tokio::test(start_paused = true)]
async fn a_null_key_matches_what_is_tagged_with_null_and_nothing_else() {
    // T13.5, T13.8, edge case 20: queued entries
    let world = world().await;
    let held = world.script.hold_sinks();
    push(&world, Job { n: 9 }).await;
    let (outcomes, gate) = relays(&world.script, |_| Value::Null);
    world.send(1).await;
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted]);
    assert_eq!(
        world.row("sink").1,
        r#"{"queue":[{"n":9},{"n":1,"~admit":null}],"~attempts":1,"~ignore":[null]}"#
    );
    gate.open();
    settle().await;
    world.send(2).await;
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted, Outcome::Absorbed]);
    held.open();
    settle().await;
    assert_eq!(world.sunk().await, [9, 1]);
}

#[tokio::test(start_paused = true)]
async fn taken_entries_count_as_queued_ones_do() {
    // T13.8, edge case 20: taken entries
    let world = world().await;
    let outcomes = Outcomes::default();
    world.script.relays({
        let outcomes = outcomes.clone();
        move |this, job, dispatch| {
            let outcomes = outcomes.clone();
            async move {
                let admitted = admit(&this, &dispatch, Value::Null, |sink| sink.side.push(job));
                outcomes.note(admitted.await?);
                Ok(())
            }
        }
    });
    let sink = world.sink().await;
    let side = |count: usize| {
        sink.update(|sink| sink.side.take_now(count))
            .expect("open")
            .expect("there are so many");
    };
    // The sink is kept from acknowledging, which would forget what is taken.
    let held = world.script.hold_sinks();
    push(&world, Job { n: 100 }).await;
    sink.update(|sink| sink.side.push(Job { n: 9 }))
        .expect("open");
    side(1);
    world.send(1).await;
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted]);
    side(1);
    settle().await;
    assert_eq!(
        world.row("sink").1,
        r#"{"queue":[{"n":100}],"side":{"taken":[{"n":9},{"n":1,"~admit":null}]},"~attempts":1}"#
    );
    world.send(2).await;
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted, Outcome::Absorbed]);
    held.open();
}

#[tokio::test(start_paused = true)]
async fn an_eviction_between_two_items_does_not_lose_the_second_admission() {
    // T13.13, T16.2, edge case 23
    let world = world().await;
    let (outcomes, gate) = relays(&world.script, |_| json!("same"));
    for n in [1, 2] {
        world.send(n).await;
    }
    settle().await;
    let host = world.app.worker.hosted::<Hub>().expect("mounted");
    host.wind_down("a", Some(std::time::Duration::from_secs(600)));
    settle().await;
    gate.open();
    settle().await;
    // The second item was left for the next activation, and nothing of the first is in the row.
    assert_eq!(outcomes.all(), [Outcome::Admitted]);
    assert_eq!(
        world.row("relay"),
        (true, r#"{"queue":[{"n":2}]}"#.to_owned())
    );
    pass(10_000).await;
    assert_eq!(outcomes.all(), [Outcome::Admitted; 2]);
    assert_eq!(world.sunk().await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_admit_under_one_key_at_once_one_lands() {
    // T13.8, T13.12
    const SOURCES: u64 = 40;
    let world = world().await;
    let held = world.script.hold_sinks();
    let (outcomes, gate) = relays(&world.script, |n| json!(n % 4));
    let hub = world.hub().await;
    let sending = (0..SOURCES).map(|n| {
        let sources = hub.trays(Hub::RELAYS).expect("declared");
        crate::app::spawn(async move {
            let id = format!("source-{n}");
            let sent = sources.admit(&id, |relay| relay.queue.push(Job { n }));
            sent.await.expect("open").await.expect("durable");
        })
    });
    for sent in futures_util::future::join_all(sending).await {
        sent.expect("sent");
    }
    gate.reached(usize::try_from(SOURCES).expect("few")).await;
    let all = outcomes.all();
    let admitted = all.iter().filter(|outcome| **outcome == Outcome::Admitted);
    assert_eq!((all.len(), admitted.count()), (40, 4));
    let sink = world.sink().await;
    let mut queued: Vec<u64> = sink
        .read(|sink| sink.queue.iter().map(|job| job.n % 4).collect())
        .expect("open");
    queued.sort_unstable();
    assert_eq!(queued, [0, 1, 2, 3]);
    gate.open();
    held.open();
}
