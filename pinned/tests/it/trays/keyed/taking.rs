//! Takes within a dispatch (T6).

use std::pin::pin;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use pinned::BoxError;

use super::{Relay, Relayed, Script, world};
use crate::app::{Gate, pass, settle, spawn};

/// What a handler took, in its order.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<Vec<u64>>>);

impl Taken {
    fn note(&self, n: u64) {
        self.0.lock().push(n);
    }

    fn all(&self) -> Vec<u64> {
        self.0.lock().clone()
    }
}

/// A relay that takes `count` entries of its feed one by one, and then waits at the gate.
fn takes(script: &Script, count: usize) -> (Taken, Gate) {
    let (taken, gate) = (Taken::default(), Gate::closed());
    script.relays({
        let (taken, gate) = (taken.clone(), gate.clone());
        move |_, _, dispatch| {
            let (taken, gate) = (taken.clone(), gate.clone());
            async move { take(&dispatch, count, taken, gate).await }
        }
    });
    (taken, gate)
}

async fn take(dispatch: &Relayed, count: usize, taken: Taken, gate: Gate) -> Result<(), BoxError> {
    let mut feed = pin!(
        dispatch
            .take(|relay: &mut Relay| &mut relay.feed)
            .take(count)
    );
    while let Some(n) = feed.try_next().await? {
        taken.note(n);
    }
    gate.pass().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_take_waits_for_more_and_arrivals_and_untakes_wake_it() {
    // T6.2, T6.3
    let world = world().await;
    let (taken, gate) = takes(&world.script, 4);
    world.send(1).await;
    settle().await;
    assert_eq!(taken.all(), [0_u64; 0]);
    let relay = world.relay().await;
    relay
        .update(|relay| relay.feed.extend([1, 2]))
        .expect("open");
    settle().await;
    assert_eq!(taken.all(), [1, 2]);
    assert_eq!(
        world.row("relay"),
        (
            true,
            r#"{"feed":{"taken":[1,2]},"queue":[{"n":1}],"~attempts":1}"#.to_owned()
        )
    );
    // Whoever puts one back wakes it too.
    relay
        .update(|relay| relay.feed.untake(1))
        .expect("open")
        .expect("taken");
    settle().await;
    assert_eq!(taken.all(), [1, 2, 2]);
    relay
        .update(|relay| relay.feed.push_front(9))
        .expect("open")
        .expect("empty");
    settle().await;
    assert_eq!(taken.all(), [1, 2, 2, 9]);
    gate.open();
    settle().await;
    // T6.4, T6.7
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_comes_again_until_the_item_is_acknowledged() {
    // T6.4, T6.5, T6.7, edge case 15
    let world = world().await;
    let (taken, _) = takes(&world.script, 2);
    let relay = world.relay().await;
    relay
        .update(|relay| relay.feed.extend([1, 2]))
        .expect("open");
    world.send(7).await;
    settle().await;
    assert_eq!(
        world.row("relay"),
        (
            true,
            r#"{"feed":{"taken":[1,2]},"queue":[{"n":7}],"~attempts":1}"#.to_owned()
        )
    );
    let script = Script::default();
    let (again, gate) = takes(&script, 2);
    let world = world.crash_into(script).await;
    settle().await;
    assert_eq!((taken.all(), again.all()), (vec![1, 2], vec![1, 2]));
    assert_eq!(world.script.deliveries(), [(7, 2)]);
    gate.open();
    settle().await;
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
    let world = world.crash().await;
    world.relay().await;
    settle().await;
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
    assert_eq!(world.script.deliveries(), [(7, 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_acknowledgement_is_one_write_and_a_second_one_writes_nothing() {
    // T6.4, T10.6, edge case 16
    for singles in [false, true] {
        let mut world = world().await;
        if singles {
            world = super::world_over(
                super::Switched::singles(pinned::durability::MemoryStore::new()),
                Script::default(),
            )
            .await;
        }
        let gate = Gate::closed();
        world.script.relays({
            let gate = gate.clone();
            move |_, _, dispatch| {
                let gate = gate.clone();
                async move {
                    dispatch.set_state("half way")?;
                    take(&dispatch, 2, Taken::default(), gate).await
                }
            }
        });
        let relay = world.relay().await;
        relay
            .update(|relay| relay.feed.extend([1, 2]))
            .expect("open");
        world.send(7).await;
        settle().await;
        world.store.writes();
        gate.open();
        settle().await;
        // The acknowledgement, and the mark; with batches they go together.
        let writes: &[&str] = match singles {
            true => &["relay", "relay"],
            false => &["relay"],
        };
        assert_eq!(world.store.writes(), writes);
        relay.kick().expect("open").await.expect("durable");
        settle().await;
        assert_eq!(world.row("relay"), (false, "{}".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_acknowledgement_commits_the_takes_of_every_queue_whoever_took_them() {
    // T6.6
    let world = world().await;
    let (_, gate) = takes(&world.script, 1);
    let relay = world.relay().await;
    relay
        .update(|relay| {
            relay.feed.extend([1, 2]);
            relay.other.extend([3, 4, 5]);
        })
        .expect("open");
    world.send(7).await;
    settle().await;
    let others = relay.update(|relay| relay.other.take_now(2)).expect("open");
    assert_eq!(others.expect("there are three"), [3, 4]);
    settle().await;
    assert_eq!(
        world.row("relay").1,
        r#"{"feed":{"taken":[1],"items":[2]},"other":{"taken":[3,4],"items":[5]},"queue":[{"n":7}],"~attempts":1}"#
    );
    gate.open();
    settle().await;
    assert_eq!(
        world.row("relay"),
        (false, r#"{"feed":[2],"other":[5]}"#.to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn two_takes_at_once_share_the_entries_out() {
    // T6.2
    let world = world().await;
    let taken = Taken::default();
    world.script.relays({
        let taken = taken.clone();
        move |_, _, dispatch| {
            let taken = taken.clone();
            async move {
                let open = Gate::closed();
                open.open();
                let one = take(&dispatch, 3, taken.clone(), open.clone());
                let other = take(&dispatch, 3, taken, open);
                futures_util::future::try_join(one, other).await?;
                Ok(())
            }
        }
    });
    world.send(1).await;
    let relay = world.relay().await;
    for n in 1..=6 {
        relay.update(|relay| relay.feed.push(n)).expect("open");
        settle().await;
    }
    let mut all = taken.all();
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3, 4, 5, 6]);
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_arrival_is_missed_whoever_pushes_whenever() {
    // T6.2
    let world = world().await;
    let (taken, gate) = takes(&world.script, 400);
    world.send(1).await;
    let relay = world.relay().await;
    let pushing = (0..4_u64).map(|task| {
        let relay = relay.clone();
        spawn(async move {
            for n in 0..100 {
                relay
                    .update(|relay| relay.feed.push(task * 100 + n))
                    .expect("open");
                tokio::task::yield_now().await;
            }
        })
    });
    for pushed in futures_util::future::join_all(pushing).await {
        pushed.expect("pushed");
    }
    gate.reached(1).await;
    let mut all = taken.all();
    all.sort_unstable();
    assert_eq!(all, (0..400).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_take_ends_with_its_dispatch() {
    // T6.2, T12.4: what is taken later would be gone with another item's acknowledgement.
    let world = world().await;
    let ended = Arc::new(Mutex::new(Vec::new()));
    world.script.relays({
        let ended = Arc::clone(&ended);
        move |this, _, dispatch| {
            let ended = Arc::clone(&ended);
            async move {
                this.context().spawn(async move {
                    let mut feed = pin!(dispatch.take(|relay| &mut relay.feed));
                    while let Some(taken) = feed.next().await {
                        let taken = taken.map_err(|error| error.to_string());
                        ended.lock().push(taken);
                    }
                });
                Ok(())
            }
        }
    });
    world.send(1).await;
    pass(10).await;
    let relay = world.relay().await;
    relay.update(|relay| relay.feed.push(5)).expect("open");
    settle().await;
    assert_eq!(*ended.lock(), [Err("this delivery is over".to_owned())]);
    assert_eq!(world.row("relay"), (false, r#"{"feed":[5]}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn untaking_part_and_then_all_leaves_no_trace() {
    // Edge case 17
    let world = world().await;
    let relay = world.relay().await;
    relay
        .update(|relay| relay.feed.extend([1, 2, 3]))
        .expect("open");
    settle().await;
    let before = world.row("relay");
    let taken = relay.update(|relay| relay.feed.take_now(3)).expect("open");
    assert_eq!(taken.expect("there are three"), [1, 2, 3]);
    settle().await;
    assert_eq!(world.row("relay").1, r#"{"feed":{"taken":[1,2,3]}}"#);
    for (count, doc) in [
        (1, r#"{"feed":{"taken":[1,2],"items":[3]}}"#),
        (2, r#"{"feed":[1,2,3]}"#),
    ] {
        relay
            .update(|relay| relay.feed.untake(count))
            .expect("open")
            .expect("taken");
        settle().await;
        assert_eq!(world.row("relay").1, doc);
    }
    assert_eq!(world.row("relay"), before);
}

#[tokio::test(start_paused = true)]
async fn what_is_assigned_while_entries_are_taken_stays_behind_them() {
    // T5.4, T5.5, edge case 18
    for (assigned, doc, after) in [
        (
            vec![8, 9],
            r#"{"feed":{"taken":[1],"items":[8,9]}}"#,
            vec![1, 8, 9],
        ),
        (vec![], r#"{"feed":{"taken":[1]}}"#, vec![1]),
    ] {
        let world = world().await;
        let relay = world.relay().await;
        relay
            .update(|relay| {
                relay.feed.extend([1, 2, 3]);
                relay.feed.take_now(1)
            })
            .expect("open")
            .expect("there are three");
        relay
            .update(|relay| relay.feed.assign(assigned))
            .expect("open");
        settle().await;
        assert_eq!(world.row("relay").1, doc);
        let world = world.crash().await;
        let relay = world.relay().await;
        let feed = relay.read(|relay| relay.feed.iter().copied().collect::<Vec<_>>());
        assert_eq!(feed.expect("open"), after);
    }
}
