//! Admissions under a key (T13).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use pinned::{Instance, Outcome, TrayError};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Hub, Job, Relayed, Script, Sink, World, world};
use crate::app::{Gate, pass, settle};

/// Admits into the sink under `key`, as most handlers here do.
pub(super) async fn admit(
    this: &Instance<Hub>,
    dispatch: &Relayed,
    key: impl Serialize,
    admission: impl FnOnce(&mut Sink),
) -> Result<Outcome, TrayError> {
    let sink = this.tray(Hub::SINK).await?;
    dispatch.admit_once(key, &sink, admission)
}

/// What came of the admissions of a test.
#[derive(Clone, Default)]
pub(super) struct Outcomes(Arc<Mutex<Vec<Outcome>>>);

impl Outcomes {
    pub(super) fn note(&self, outcome: Outcome) {
        self.0.lock().push(outcome);
    }

    pub(super) fn all(&self) -> Vec<Outcome> {
        self.0.lock().clone()
    }
}

/// A relay that admits each item once, under `key(n)`, and then waits at the gate.
pub(super) fn relays(
    script: &Script,
    key: impl Fn(u64) -> Value + Send + Sync + 'static,
) -> (Outcomes, Gate) {
    let (outcomes, gate) = (Outcomes::default(), Gate::closed());
    script.relays({
        let (outcomes, gate) = (outcomes.clone(), gate.clone());
        move |this, job, dispatch| {
            let (outcomes, gate, key) = (outcomes.clone(), gate.clone(), key(job.n));
            async move {
                let outcome = admit(&this, &dispatch, key, |sink| sink.queue.push(job)).await?;
                outcomes.note(outcome);
                gate.pass().await;
                Ok(())
            }
        }
    });
    (outcomes, gate)
}

pub(super) async fn push(world: &World, job: Job) {
    let sink = world.sink().await;
    let pushed = sink.admit(|sink| sink.queue.push(job));
    pushed.expect("open").await.expect("durable");
}

#[tokio::test(start_paused = true)]
async fn an_admission_is_tagged_noted_on_both_sides_and_let_go_of() {
    // T2.2, T2.3, T13.4, T13.9, T13.10, T13.11
    let world = world().await;
    let held = world.script.hold_sinks();
    let (outcomes, gate) = relays(&world.script, |n| json!(["r", n]));
    world.send(1).await;
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted]);
    assert_eq!(
        world.row("sink"),
        (
            true,
            r#"{"queue":[{"n":1,"~admit":["r",1]}],"~attempts":1,"~ignore":[["r",1]]}"#.to_owned()
        )
    );
    assert_eq!(
        world.row("relay"),
        (
            true,
            r#"{"queue":[{"n":1}],"~attempts":1,"~dispatch":[{"key":["r",1],"target":["sink","~"],"outcome":"admitted","cleaned":false}]}"#.to_owned()
        )
    );
    gate.open();
    settle().await;
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
    assert_eq!(
        world.row("sink").1,
        r#"{"queue":[{"n":1,"~admit":["r",1]}],"~attempts":1}"#
    );
    held.open();
    settle().await;
    assert_eq!(world.row("sink"), (false, r#"{"log":[1]}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_settling_goes_target_first_and_the_acknowledgement_takes_the_record_along() {
    // T13.10, T13.11: without batches, write by write.
    let store = super::Switched::singles(pinned::durability::MemoryStore::new());
    let world = super::world_over(store, Script::default()).await;
    let _held = world.script.hold_sinks();
    let (_, gate) = relays(&world.script, |n| json!(n));
    world.send(1).await;
    settle().await;
    let writes = world.store.writes();
    // The rows are made, the item comes, its count; then the admission, its record, and the count of the sink's item.
    assert_eq!(
        writes,
        [
            "relay", "sink", "loose", "relay", "relay", "sink", "relay", "sink"
        ]
    );
    gate.open();
    settle().await;
    // Ignore drop, cleaned, acknowledgement with the purge, mark.
    assert_eq!(world.store.writes(), ["sink", "relay", "relay", "relay"]);
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_gets_the_recorded_outcome_without_running_the_body() {
    // T13.4, T13.6
    let world = world().await;
    let (outcomes, _) = relays(&world.script, |n| json!(n));
    world.send(1).await;
    settle().await;
    let script = Script::default();
    let gate = Gate::closed();
    script.relays({
        let (outcomes, gate) = (outcomes.clone(), gate.clone());
        move |this, _, dispatch| {
            let (outcomes, gate) = (outcomes.clone(), gate.clone());
            async move {
                let sinks = this.trays(Hub::SINKS)?.get_or_create("x").await?;
                let error = dispatch
                    .admit_once(1, &sinks, |_| ())
                    .expect_err("another target");
                assert!(matches!(error, TrayError::Keyed(_)), "{error:?}");
                let again = admit(&this, &dispatch, 1, |_| panic!("it has run")).await?;
                outcomes.note(again);
                gate.pass().await;
                Ok(())
            }
        }
    });
    let world = world.crash_into(script).await;
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted, Outcome::Admitted]);
    assert_eq!(world.script.deliveries(), [(1, 2)]);
    gate.open();
    settle().await;
    assert_eq!(world.sunk().await, [1]);
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn one_item_admits_once_under_one_key_in_whatever_form() {
    // T13.5, T13.15, edge case 21: tuples and lists, maps in any order, integral floats.
    let world = world().await;
    let outcomes = Outcomes::default();
    world.script.relays({
        let outcomes = outcomes.clone();
        move |this, job, dispatch| {
            let outcomes = outcomes.clone();
            async move {
                let pairs = [
                    [json!(("r", 1)), json!(["r", 1.0])],
                    [json!(null), json!(())],
                    [json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1})],
                ];
                for [one, other] in pairs {
                    for key in [one, other] {
                        let job = job.clone();
                        let admitted = admit(&this, &dispatch, key, |sink| sink.queue.push(job));
                        outcomes.note(admitted.await?);
                    }
                }
                let ordered: HashMap<&str, u64> = [("b", 2), ("a", 1)].into();
                outcomes.note(admit(&this, &dispatch, ordered, |_| panic!("known")).await?);
                // Of different types, and so different.
                for key in [json!(1), json!(true), json!("1"), json!(1.5)] {
                    let job = job.clone();
                    admit(&this, &dispatch, key, |sink| sink.queue.push(job)).await?;
                }
                Ok(())
            }
        }
    });
    world.send(1).await;
    settle().await;
    assert!(
        outcomes
            .all()
            .iter()
            .all(|outcome| *outcome == Outcome::Admitted)
    );
    assert_eq!(world.sunk().await, [1; 7]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_has_no_json_form_and_a_body_that_breaks_a_rule_leave_nothing() {
    // T13.5, T13.7, T13.9
    let world = world().await;
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    world.script.relays({
        let errors = Arc::clone(&errors);
        move |this, job, dispatch| {
            let errors = Arc::clone(&errors);
            async move {
                let note = |error: TrayError| {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    errors
                        .lock()
                        .push(cause.unwrap_or_else(|| error.to_string()));
                };
                let odd: HashMap<Vec<u8>, u64> = [(vec![1], 1)].into();
                note(
                    admit(&this, &dispatch, odd, |_| ())
                        .await
                        .expect_err("no JSON"),
                );
                let front = admit(&this, &dispatch, 1, |sink| {
                    sink.total.set(1);
                    sink.queue
                        .push_front(job.clone())
                        .expect("nothing is taken");
                });
                note(front.await.expect_err("no append"));
                let number = admit(&this, &dispatch, 1, |sink| {
                    sink.total.set(1);
                    sink.numbers.push(5);
                });
                note(number.await.expect_err("no object"));
                let sink = this.tray(Hub::SINK).await?;
                let refused = dispatch.admit_once(1, &sink, |sink| {
                    sink.total.set(1);
                    sink.queue.push(job.clone());
                    Err::<(), _>("not today")
                });
                note(refused.expect_err("refused"));
                // The key is free for all that.
                let outcome = admit(&this, &dispatch, 1, |sink| sink.queue.push(job)).await?;
                assert_eq!(outcome, Outcome::Admitted);
                Ok(())
            }
        }
    });
    world.send(1).await;
    settle().await;
    assert_eq!(
        *errors.lock(),
        [
            "key must be a string",
            "a keyed admission appends; it cannot put anything before the head",
            "an entry that is admitted under a key is a JSON object",
            "not today",
        ]
    );
    assert_eq!(world.row("sink"), (false, r#"{"log":[1]}"#.to_owned()));
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_keyed_admission_within_another_of_the_same_tray_is_an_error() {
    // T13.14
    let world = world().await;
    world.script.relays(|this, job, dispatch| async move {
        let sink = this.tray(Hub::SINK).await?;
        let within = |sink_value: &mut Sink| {
            let error = dispatch
                .admit_once("inner", &sink, |sink| sink.queue.push(Job { n: 99 }))
                .expect_err("one at a time");
            assert!(matches!(error, TrayError::InSegment(_)), "{error:?}");
            assert!(matches!(sink.kick(), Err(TrayError::InSegment(_))));
            sink_value.queue.push(job.clone());
        };
        let outcome = dispatch.admit_once("outer", &sink, within)?;
        assert_eq!(outcome, Outcome::Admitted);
        Ok(())
    });
    world.send(1).await;
    settle().await;
    assert_eq!(world.sunk().await, [1]);
    assert_eq!(world.script.deliveries(), [(1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_admission_that_panics_leaves_nothing_and_the_item_comes_again() {
    // T13.9, T18.1
    let world = world().await;
    world.script.relays(|this, job, dispatch| async move {
        let attempt = dispatch.attempts();
        admit(&this, &dispatch, "k", |sink| {
            sink.total.update(|total| {
                *total += 1;
                assert!(attempt > 1, "half way");
            });
            sink.queue.push(job);
        })
        .await?;
        Ok(())
    });
    world.send(1).await;
    pass(10_000).await;
    assert_eq!(world.script.deliveries(), [(1, 1), (1, 2)]);
    assert_eq!(
        world.row("sink"),
        (false, r#"{"log":[1],"total":1}"#.to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn an_entry_must_not_bring_a_tag_of_its_own() {
    // T2.3, T13.7
    #[derive(Serialize)]
    struct Tagged {
        #[serde(rename = "~admit")]
        admit: u64,
    }
    let text = serde_json::to_value(Tagged { admit: 1 }).expect("JSON");
    let world = world().await;
    let lots = world.hub().await.tray(Hub::LOOSE).await.expect("open");
    let error = lots
        .admit(|loose| loose.queue.push(text))
        .expect_err("reserved");
    assert!(matches!(error, TrayError::Encode { .. }), "{error:?}");
    settle().await;
    assert_eq!(world.row("loose"), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_appended_runs_as_written() {
    // T13.7, T13.9: without appends there is nothing to absorb.
    let world = world().await;
    let (outcomes, gate) = (Outcomes::default(), Gate::closed());
    world.script.relays({
        let (outcomes, gate) = (outcomes.clone(), gate.clone());
        move |this, _, dispatch| {
            let (outcomes, gate) = (outcomes.clone(), gate.clone());
            async move {
                let adds = admit(&this, &dispatch, 1, |sink| {
                    sink.total.update(|total| *total += 1)
                });
                outcomes.note(adds.await?);
                gate.pass().await;
                Ok(())
            }
        }
    });
    world.send(1).await;
    settle().await;
    assert_eq!(
        world.row("sink"),
        // Its own admission has been drained meanwhile.
        (false, r#"{"total":1,"~ignore":[1]}"#.to_owned())
    );
    gate.open();
    settle().await;
    assert_eq!(outcomes.all(), [Outcome::Admitted]);
    assert_eq!(world.row("sink"), (false, r#"{"total":1}"#.to_owned()));
}
