//! What admissions go into: trays that close, are deleted, or are the source itself (T13.1 to T13.3, T13.10).

use futures_util::FutureExt;
use pinned::{BoxError, TrayError};

use super::{Hub, Job, world};
use crate::app::{Gate, pass, settle};

#[tokio::test(start_paused = true)]
async fn a_target_that_is_gone_does_not_hold_its_source_up() {
    // T13.10, edge case 22
    let world = world().await;
    let gate = Gate::closed();
    world.script.relays({
        let gate = gate.clone();
        move |this, job, dispatch| {
            let gate = gate.clone();
            async move {
                let sink = this.trays(Hub::SINKS)?.get_or_create("x").await?;
                dispatch.admit_once(1, &sink, |sink| sink.queue.push(job))?;
                gate.pass().await;
                Ok(())
            }
        }
    });
    world.send(1).await;
    settle().await;
    let sinks = world.hub().await.trays(Hub::SINKS).expect("declared");
    sinks
        .delete("x")
        .await
        .expect("there is one")
        .await
        .expect("durable");
    settle().await;
    assert_eq!(world.row_of("sinks", "x"), None);
    gate.open();
    settle().await;
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
    assert_eq!(world.row_of("sinks", "x"), None);
}

#[tokio::test(start_paused = true)]
async fn a_target_that_has_closed_is_opened_to_let_go_of_the_key() {
    // T13.10
    let world = world().await;
    let gate = Gate::closed();
    world.script.relays({
        let gate = gate.clone();
        move |this, job, dispatch| {
            let gate = gate.clone();
            async move {
                let sink = this.trays(Hub::SINKS)?.get_or_create("x").await?;
                dispatch.admit_once(1, &sink, |sink| sink.queue.push(job))?;
                gate.pass().await;
                Ok(())
            }
        }
    });
    world.send(1).await;
    settle().await;
    assert_eq!(
        world.row_of("sinks", "x"),
        Some((false, r#"{"log":[1],"~ignore":[1]}"#.to_owned()))
    );
    let sinks = world.hub().await.trays(Hub::SINKS).expect("declared");
    assert!(sinks.live().is_empty());
    gate.open();
    settle().await;
    assert_eq!(
        world.row_of("sinks", "x"),
        Some((false, r#"{"log":[1]}"#.to_owned()))
    );
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn two_trays_that_close_while_each_settles_with_the_other_both_end() {
    // T13.10, T14.3
    let world = world().await;
    let gate = Gate::closed();
    world.script.relays({
        let gate = gate.clone();
        move |this, job, dispatch| {
            let gate = gate.clone();
            async move {
                let other = if dispatch.id() == "a" { "b" } else { "a" };
                if job.n < 10 {
                    let other = this.trays(Hub::RELAYS)?.get_or_create(other).await?;
                    dispatch.admit_once(job.n, &other, |other| {
                        other.feed.clear();
                    })?;
                    dispatch.cancelled().await;
                    gate.pass().await;
                }
                Ok(())
            }
        }
    });
    let relays = world.hub().await.trays(Hub::RELAYS).expect("declared");
    for (id, n) in [("a", 1), ("b", 2)] {
        let sent = relays.admit(id, |relay| relay.queue.push(Job { n })).await;
        let _ = sent.expect("open");
    }
    settle().await;
    let open = relays.live();
    assert_eq!(open.len(), 2);
    // Both handlers end, and their settling finds the other tray closing.
    gate.open();
    let closes: Vec<_> = open
        .iter()
        .map(|relay| {
            relay.cancel_dispatch().expect("open");
            relay.close().expect("a tray of a map")
        })
        .collect();
    let closed = futures_util::future::join_all(closes).boxed();
    let domain = world.app.worker.domain();
    domain
        .timeout(std::time::Duration::from_secs(60), closed)
        .await
        .expect("both end");
}

#[tokio::test(start_paused = true)]
async fn a_tray_may_admit_into_itself() {
    // T13.4
    let world = world().await;
    world.script.relays(|this, job, dispatch| async move {
        if job.n < 3 {
            let relay = this.tray(Hub::RELAY).await?;
            let next = Job { n: job.n + 1 };
            dispatch.admit_once(job.n, &relay, |relay| relay.queue.push(next))?;
        }
        Ok(())
    });
    world.send(1).await;
    settle().await;
    assert_eq!(world.script.deliveries(), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn plain_admissions_refuse_a_retiring_tray_and_say_how_it_retires() {
    // T13.1, T13.3, T15.5
    let world = world().await;
    let held = world.script.hold_sinks();
    let sinks = world.hub().await.trays(Hub::SINKS).expect("declared");
    for (id, deleted) in [("closed", false), ("deleted", true)] {
        let admitted = sinks.admit(id, |sink| sink.queue.push(Job { n: 1 })).await;
        admitted.expect("open").await.expect("durable");
        let sink = sinks.get(id).await.expect("there is one");
        match deleted {
            true => {
                let _ = sink.delete().expect("open");
                held.open();
                sink.deleted().await;
            }
            false => sink.close().expect("a tray of a map").await,
        }
        for refused in [
            sink.kick(),
            sink.admit(|sink| sink.queue.push(Job { n: 2 })),
        ] {
            match (refused.expect_err("retired"), deleted) {
                (TrayError::Closed(_), false) | (TrayError::Deleted(_), true) => {}
                (other, _) => panic!("{other:?}"),
            }
        }
    }
    settle().await;
    assert_eq!(
        world.row_of("sinks", "closed"),
        Some((true, r#"{"queue":[{"n":1}],"~attempts":1}"#.to_owned()))
    );
    assert_eq!(world.row_of("sinks", "deleted"), None);
}

#[tokio::test(start_paused = true)]
async fn a_receipt_covers_all_that_the_instance_has_enlisted() {
    // T13.1
    let world = world().await;
    let (relay, sink) = (world.relay().await, world.sink().await);
    settle().await;
    let gate = world.store.park();
    relay.update(|relay| relay.done.set(1)).expect("open");
    let receipt = sink.kick().expect("open");
    assert!(
        pinned::durability::Receipt::clone(&receipt)
            .into_future()
            .now_or_never()
            .is_none()
    );
    gate.open();
    receipt.await.expect("durable");
    assert_eq!(world.row("relay").1, r#"{"done":1}"#);
}

#[tokio::test(start_paused = true)]
async fn a_failed_admission_leaves_nothing_and_has_no_receipt() {
    // T13.2, as decided here: all or nothing.
    let world = world().await;
    let sink = world.sink().await;
    settle().await;
    world.store.writes();
    let error = sink.admit(|sink| {
        sink.queue.push(Job { n: 1 });
        sink.total.set(5);
        Err::<(), BoxError>("no".into())
    });
    assert!(matches!(error, Err(TrayError::Refused(_))), "{error:?}");
    pass(100).await;
    assert_eq!(world.store.writes(), [""; 0]);
    assert_eq!(
        sink.read(|sink| (sink.queue.len(), *sink.total))
            .expect("open"),
        (0, 0)
    );
    assert_eq!(world.row("sink"), (false, "{}".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_tray_of_another_instance_is_no_target() {
    // T13.4: it has another log, and would be looked for in this one.
    let world = world().await;
    let host = world.app.worker.hosted::<Hub>().expect("mounted");
    let foreign = host.instance("b").await.expect("live");
    let foreign = foreign.tray(Hub::SINK).await.expect("open");
    world.script.relays({
        let foreign = foreign.clone();
        move |_this, job, dispatch| {
            let foreign = foreign.clone();
            async move {
                let refused = dispatch.admit_once(1, &foreign, |sink| sink.queue.push(job));
                assert!(matches!(refused, Err(TrayError::Keyed(_))), "{refused:?}");
                Ok(())
            }
        }
    });
    world.send(1).await;
    settle().await;
    assert_eq!(world.script.deliveries(), [(1, 1)]);
    assert_eq!(world.row("relay"), (false, "{}".to_owned()));
    assert!(foreign.read(|sink| sink.log.is_empty()).expect("open"));
}
