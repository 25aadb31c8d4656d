//! A process that ends between two writes of rows (T13.11, edge case 19).

use std::sync::Arc;

use parking_lot::Mutex;
use pinned::durability::MemoryStore;
use pinned::{BoxError, TrayError};

use super::{Hub, Job, Relay, Script, Sink, Switched, World, world_over};
use crate::app::{pass, settle};
use crate::durable::store::Writes;

/// What a handler admits under the key of its item.
type Body = fn(&mut Sink, Job);

/// A relay that admits `body` under `[r, n]`, and ends when all of it is durable.
fn relays(body: Body) -> Script {
    let script = Script::default();
    script.relays(move |this, job, dispatch| async move {
        let sink = this.tray(Hub::SINK).await?;
        let key = ("r", job.n);
        dispatch.admit_once(key, &sink, |sink| body(sink, job))?;
        this.context().frontier()?.wait().await?;
        Ok(())
    });
    script
}

/// Two items through the relay; the process ends in write `stop`, and again `later` writes after that. What the sink
/// has in the end, and whether both ends were reached.
async fn crashed_at(body: Body, stop: usize, later: Option<usize>) -> (World, bool) {
    let world = world_over(Switched::singles(MemoryStore::new()), relays(body)).await;
    // Both are durably admitted before anything can be torn.
    let gate = world.store.park();
    let relay = world.relay().await;
    let admitted = relay
        .admit(|relay: &mut Relay| relay.queue.extend([Job { n: 1 }, Job { n: 2 }]))
        .expect("open");
    world.store.set(Writes::Apply);
    gate.open();
    drop(relay);
    let admitted = admitted.into_future();
    world.store.set(Writes::StopAfter(stop));
    let admitted = tokio::time::timeout(std::time::Duration::from_secs(5), admitted).await;
    pass(10_000).await;
    let mut reached = world.store.is_stopped();
    let was_admitted = matches!(admitted, Ok(Ok(())));
    let mut world = world.crash_into(relays(body)).await;
    if let Some(later) = later {
        world.store.set(Writes::StopAfter(later));
        pass(20_000).await;
        reached &= world.store.is_stopped();
        world = world.crash_into(relays(body)).await;
    }
    if !was_admitted {
        // Its first write was lost: it was never promised. Once more, unless it landed after all.
        pass(20_000).await;
        if world.sunk().await.is_empty() {
            let relay = world.relay().await;
            let _ = relay
                .admit(|relay| relay.queue.extend([Job { n: 1 }, Job { n: 2 }]))
                .expect("open");
        }
    }
    pass(20_000).await;
    (world, reached)
}

async fn assert_exact(world: &World, side: &str, told: &str) {
    assert_eq!(world.sunk().await, [1, 2], "{told}");
    assert_eq!(world.row("relay"), (false, "{}".to_owned()), "{told}");
    assert_eq!(
        world.row("sink"),
        (false, format!(r#"{{"log":[1,2]{side}}}"#)),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn torn_after_any_write_each_item_is_admitted_exactly_once() {
    // T13.4, T13.11, T13.13, edge case 19: the admission, the record, the settling, the acknowledgement
    let mut stop = 0;
    loop {
        let (world, reached) = crashed_at(|sink, job| sink.queue.push(job), stop, None).await;
        assert_exact(&world, "", &format!("stopped in write {stop}")).await;
        if !reached {
            break;
        }
        stop += 1;
    }
    assert!(stop > 10, "the sweep ended at once: {stop}");
}

#[tokio::test(start_paused = true)]
async fn torn_twice_each_item_is_admitted_exactly_once() {
    // T13.11, edge case 19
    for stop in 1..16 {
        for later in 0..6 {
            let (world, _) = crashed_at(|sink, job| sink.queue.push(job), stop, Some(later)).await;
            assert_exact(
                &world,
                "",
                &format!("stopped in write {stop}, then in {later}"),
            )
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_two_appends_lands_whole_and_once() {
    // T13.8, edge case 19
    let body: Body = |sink, job| {
        sink.queue.push(job.clone());
        sink.side.push(job);
    };
    let side = r#","side":[{"n":1,"~admit":["r",1]},{"n":2,"~admit":["r",2]}]"#;
    let mut stop = 0;
    loop {
        let (world, reached) = crashed_at(body, stop, None).await;
        assert_exact(&world, side, &format!("stopped in write {stop}")).await;
        if !reached {
            break;
        }
        stop += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_landed_without_its_note_absorbs_as_much_as_landed() {
    // T13.8, edge case 19: rows as another edition may leave them, with the first of two appends alone.
    let disk = MemoryStore::new();
    let key = |name: &str| pinned::durability::TrayKey::new(name, "~");
    let claim = || {
        let instance = pinned::durability::InstanceKey::new("/hubs", "a");
        pinned::durability::Claim::new(instance, 0)
    };
    let rows = [
        ("relay", r#"{"queue":[{"n":1}],"~attempts":1}"#),
        ("sink", r#"{"queue":[{"n":1,"~admit":["r",1]}]}"#),
    ];
    for (name, doc) in rows {
        use pinned::durability::{Doc, StateStore};
        let doc = Doc::parse(doc).expect("an object");
        disk.set_tray(claim(), key(name), true, doc)
            .await
            .expect("set");
    }
    let script = relays(|sink, job| {
        sink.queue.push(job.clone());
        sink.queue.push(Job { n: job.n + 10 });
        sink.side.push(job);
    });
    let held = script.hold_sinks();
    let world = world_over(Switched::singles(disk), script).await;
    pass(10_000).await;
    assert_eq!(
        world.row("sink").1,
        r#"{"queue":[{"n":1,"~admit":["r",1]},{"n":11,"~admit":["r",1]}],"side":[{"n":1,"~admit":["r",1]}],"~attempts":1}"#
    );
    held.open();
    settle().await;
    assert_eq!(world.sunk().await, [1, 11]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_under_a_key_leaves_nothing_and_its_retry_admits() {
    // T13.9, edge case 33, as decided here: a failed segment leaves nothing.
    let world = world_over(Switched::singles(MemoryStore::new()), Script::default()).await;
    let errors = Arc::new(Mutex::new(Vec::new()));
    world.script.relays({
        let errors = Arc::clone(&errors);
        move |this, job, dispatch| {
            let errors = Arc::clone(&errors);
            async move {
                let sink = this.tray(Hub::SINK).await?;
                let attempt = dispatch.attempts();
                let admitted = dispatch.admit_once("k", &sink, |sink| {
                    sink.queue.push(job);
                    match attempt {
                        1 => Err("half way"),
                        _ => Ok(()),
                    }
                });
                if let Err(error) = admitted {
                    errors.lock().push(matches!(error, TrayError::Refused(_)));
                    return Err(BoxError::from(error));
                }
                Ok(())
            }
        }
    });
    world.send(1).await;
    pass(10_000).await;
    assert_eq!(*errors.lock(), [true]);
    assert_eq!(world.script.deliveries(), [(1, 1), (1, 2)]);
    assert_eq!(world.sunk().await, [1]);
    assert_eq!(world.row("sink"), (false, r#"{"log":[1]}"#.to_owned()));
}
