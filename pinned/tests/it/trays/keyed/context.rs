//! The dispatch context (T12).

use std::sync::Arc;

use parking_lot::Mutex;
use pinned::{DispatchCancelled, TrayError};
use serde_json::{Value, json};

use super::{Job, Relayed, Script, world};
use crate::app::{Gate, pass, settle};

#[tokio::test(start_paused = true)]
async fn state_is_seen_at_once_survives_redelivery_and_goes_with_the_acknowledgement() {
    // T12.1, T12.2
    let mut world = world().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let gate = Gate::closed();
    let holds = |script: &Script| {
        let (seen, gate) = (Arc::clone(&seen), gate.clone());
        script.relays(move |_, job, dispatch| {
            let (seen, gate) = (Arc::clone(&seen), gate.clone());
            async move {
                let before = dispatch.state::<Value>()?;
                dispatch.set_state(&json!({ "step": dispatch.attempts() }))?;
                seen.lock()
                    .push((job.n, before, dispatch.state::<Value>()?));
                gate.pass().await;
                Ok(())
            }
        });
    };
    holds(&world.script);
    world.send(1).await;
    world.send(2).await;
    settle().await;
    assert_eq!(
        world.row("relay"),
        (
            true,
            r#"{"queue":[{"n":1},{"n":2}],"~attempts":1,"~state":{"step":1}}"#.to_owned()
        )
    );
    world = world.crash().await;
    settle().await;
    let step = |n: u64| Some(json!({ "step": n }));
    assert_eq!(*seen.lock(), [(1, None, step(1)), (1, step(1), step(2))]);
    gate.open();
    settle().await;
    // The next item starts with none.
    assert_eq!(seen.lock()[2..], [(2, None, step(1))]);
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_state_of_null_is_none() {
    // T12.2
    let world = world().await;
    world.script.relays(|_, _, dispatch| async move {
        dispatch.set_state(&1)?;
        dispatch.set_state(&Value::Null)?;
        assert_eq!(dispatch.state::<Value>()?, None);
        assert!(dispatch.state::<String>()?.is_none());
        std::future::pending().await
    });
    world.send(1).await;
    settle().await;
    assert_eq!(world.row("relay").1, r#"{"queue":[{"n":1}],"~attempts":1}"#);
}

#[tokio::test(start_paused = true)]
async fn a_state_of_another_type_is_an_error_and_stays() {
    // T2.7 as far as the type goes; T12.2
    let world = world().await;
    world.script.relays(|_, _, dispatch| async move {
        dispatch.set_state("text")?;
        let error = dispatch.state::<u64>().expect_err("it is text");
        assert!(matches!(error, TrayError::Malformed { .. }), "{error:?}");
        assert_eq!(dispatch.state::<String>()?.as_deref(), Some("text"));
        std::future::pending().await
    });
    world.send(1).await;
    settle().await;
    assert_eq!(
        world.row("relay").1,
        r#"{"queue":[{"n":1}],"~attempts":1,"~state":"text"}"#
    );
}

#[tokio::test(start_paused = true)]
async fn an_enlisted_effect_runs_after_what_was_enlisted_before_it() {
    // T12.3
    let world = world().await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let disk = world.store.disk.clone();
    world.script.relays({
        let order = Arc::clone(&order);
        move |_, _, dispatch| {
            let (order, disk) = (Arc::clone(&order), disk.clone());
            async move {
                dispatch.update(|relay| relay.done.set(5))?;
                let done = dispatch.enlist(async move {
                    let key = pinned::durability::InstanceKey::new("/hubs", "a");
                    let rows = disk.rows(&key);
                    order.lock().push(
                        rows.iter()
                            .any(|row| row.state.doc.as_str().contains("\"done\":5")),
                    );
                    Ok::<(), pinned::BoxError>(())
                })?;
                done.await?;
                Ok(())
            }
        }
    });
    world.send(1).await;
    settle().await;
    assert_eq!(*order.lock(), [true]);
    assert_eq!(world.row("relay"), (false, r#"{"done":5}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_fails_aborts_and_the_item_comes_again() {
    // T12.3, D16.1
    let world = world().await;
    world.script.relays(|_, _, dispatch| async move {
        if dispatch.attempts() == 1 {
            let _ = dispatch.enlist(async { Err::<(), _>("not this time") })?;
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    world.send(1).await;
    pass(10_000).await;
    assert_eq!(world.script.deliveries(), [(1, 1), (1, 2)]);
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_by_a_delivery_that_is_over() {
    // T12.4
    let world = world().await;
    let kept: Arc<Mutex<Option<Relayed>>> = Arc::default();
    world.script.relays({
        let kept = Arc::clone(&kept);
        move |_, _, dispatch| {
            *kept.lock() = Some(dispatch);
            async { Ok(()) }
        }
    });
    world.send(1).await;
    settle().await;
    let dispatch = kept.lock().take().expect("kept");
    let sink = world.sink().await;
    let before = (world.row("relay"), world.row("sink"));
    let over = |error: TrayError| assert_eq!(error.to_string(), "this delivery is over");
    over(dispatch.set_state(&1).expect_err("over"));
    over(
        dispatch
            .enlist(async { Ok::<(), pinned::BoxError>(()) })
            .expect_err("over"),
    );
    over(
        dispatch
            .admit_once(1, &sink, |sink| sink.queue.push(Job { n: 1 }))
            .expect_err("over"),
    );
    settle().await;
    assert_eq!((world.row("relay"), world.row("sink")), before);
    assert_eq!(world.sunk().await, [0_u64; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_cancelled_is_gone_and_the_next_one_comes() {
    // T12.5: its handler is dropped where it waits.
    let world = world().await;
    let dropped = Arc::new(());
    world.script.relays({
        let dropped = Arc::clone(&dropped);
        move |_, job, _| {
            let held = Arc::clone(&dropped);
            async move {
                let _held = held;
                match job.n {
                    1 => std::future::pending().await,
                    _ => Ok(()),
                }
            }
        }
    });
    world.send(1).await;
    world.send(2).await;
    settle().await;
    let relay = world.relay().await;
    let held = Arc::strong_count(&dropped);
    relay.cancel_dispatch().expect("open");
    settle().await;
    assert_eq!(Arc::strong_count(&dropped), held - 1);
    assert_eq!(world.script.deliveries(), [(1, 1), (2, 1)]);
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
    // Without one in hand, nothing happens.
    relay.cancel_dispatch().expect("open");
    world.send(3).await;
    settle().await;
    assert_eq!(world.script.deliveries(), [(1, 1), (2, 1), (3, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_watches_for_it_ends_by_itself_however_it_ends() {
    // T12.5, edge case 30
    for (ends, again) in [("cancelled", false), ("ok", false), ("fails", true)] {
        let world = world().await;
        world.script.relays(move |_, _, dispatch| async move {
            if dispatch.attempts() > 1 {
                return Ok(());
            }
            assert!(!dispatch.is_cancelled());
            dispatch.cancelled().await;
            assert!(dispatch.is_cancelled());
            // It may still do what it must.
            dispatch.update(|relay| relay.done.set(1))?;
            match ends {
                "cancelled" => Err(DispatchCancelled.into()),
                "ok" => Ok(()),
                _ => Err("it fails".into()),
            }
        });
        world.send(1).await;
        settle().await;
        let relay = world.relay().await;
        relay.cancel_dispatch().expect("open");
        drop(relay);
        pass(10_000).await;
        let deliveries: &[(u64, u64)] = match again {
            true => &[(1, 1), (1, 2)],
            false => &[(1, 1)],
        };
        assert_eq!(world.script.deliveries(), deliveries, "{ends}");
        assert_eq!(
            world.row("relay"),
            (false, r#"{"done":1}"#.to_owned()),
            "{ends}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ending_cancelled_without_having_been_cancelled_is_a_failure() {
    // T18.3
    let world = world().await;
    world.script.relays(|_, _, dispatch| async move {
        match dispatch.attempts() {
            1 => Err(DispatchCancelled.into()),
            _ => Ok(()),
        }
    });
    world.send(1).await;
    pass(10_000).await;
    assert_eq!(world.script.deliveries(), [(1, 1), (1, 2)]);
}

#[tokio::test(start_paused = true)]
async fn one_handler_at_a_time_where_there_is_one_slot() {
    // T11.1, edge case 24
    let script = Script::default();
    let store = super::Switched::new();
    let builder = pinned::PinnedWorker::builder()
        .host::<super::Hub>("/hubs")
        .state(script.clone())
        .store(store.clone())
        .max_concurrent_dispatches(1);
    let app = crate::app::App::start(builder).await;
    let world = super::World { app, store, script };
    let gate = world.script.hold_sinks();
    let sink = world.sink().await;
    let _ = sink
        .admit(|sink| sink.queue.push(Job { n: 1 }))
        .expect("open");
    gate.reached(1).await;
    world.send(2).await;
    settle().await;
    // Waiting for a slot is no delivery.
    assert_eq!(world.script.deliveries(), [(0_u64, 0_u64); 0]);
    assert_eq!(
        world.row("relay"),
        (true, r#"{"queue":[{"n":2}]}"#.to_owned())
    );
    gate.open();
    settle().await;
    assert_eq!(world.script.deliveries(), [(2, 1)]);
}
