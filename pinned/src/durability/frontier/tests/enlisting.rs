//! What enters the log, and where it stands.

use futures_util::FutureExt;

use super::*;
use crate::durability::frontier::log::Unit;

#[tokio::test(start_paused = true)]
async fn positions_count_every_effect_and_no_enlisting_waits_for_the_store() {
    // D13.1, D13.2, D13.3
    let scene = Scene::with_batches();
    scene.store.hold();
    assert_eq!(scene.frontier.position(), 0);
    assert_eq!(scene.set("a", 1), 1);
    assert_eq!(scene.set("b", 1), 2);
    assert_eq!(scene.delete("a"), 3);
    let effect = scene.frontier.enlist(async { Ok::<(), FrontierError>(()) });
    assert_eq!(effect.expect("open").position(), 4);
    assert_eq!(scene.set("a", 2), 5);
    assert_eq!(scene.frontier.position(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_row_write_carries_the_doc_of_its_enlisting() {
    // D13.4
    let scene = Scene::with_single_writes();
    let mut doc = serde_json::Map::new();
    doc.insert("n".to_owned(), 1.into());
    let written = RowState {
        marked: true,
        doc: doc.clone().into(),
    };
    scene.write("a", Some(written));
    doc.insert("n".to_owned(), 2.into());
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.disk(), ["a*=1"]);
}

#[tokio::test(start_paused = true)]
async fn waits_resolve_position_by_position() {
    // D13.6
    let scene = Scene::with_single_writes();
    scene.store.hold();
    let (first, second) = (scene.set("a", 1), scene.set("b", 2));
    scene.store.parked().await;
    let second = scene.frontier.wait_for(second);
    let first = scene.frontier.wait_for(first);
    scene.store.release_one();
    first.await.expect("durable");
    assert_eq!(scene.store.disk(), ["a=1"], "the second is on its way yet");
    scene.store.release();
    second.await.expect("durable");
    assert_eq!(scene.store.disk(), ["a=1", "b=2"]);
}

#[tokio::test(start_paused = true)]
async fn with_nothing_enlisted_a_wait_is_over_at_once() {
    // D13.6
    let scene = Scene::with_batches();
    scene.store.hold();
    let waited = scene.frontier.wait().now_or_never();
    assert!(matches!(waited, Some(Ok(()))));
    assert_eq!(scene.owner.flushers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_was_given_up_leaves_the_others_and_no_trace() {
    // D13.6
    let scene = Scene::with_batches();
    scene.store.hold();
    scene.set("a", 1);
    let kept = scene.frontier.wait_for(1);
    for _ in 0..10_000 {
        drop(scene.frontier.wait_for(1));
    }
    let waiting = scene.frontier.shared.log.lock().waiting();
    assert!(waiting < 100, "{waiting} waits are kept, and one is waited");
    scene.store.release();
    kept.await.expect("durable");
}

#[tokio::test(start_paused = true)]
async fn a_wait_may_be_polled_after_its_end() {
    let scene = Scene::with_batches();
    let position = scene.set("a", 1);
    let mut wait = scene.frontier.wait_for(position);
    (&mut wait).await.expect("durable");
    assert!(matches!((&mut wait).await, Err(FrontierError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn a_segment_is_one_write_per_row() {
    // D14.2
    for scene in [Scene::with_batches(), Scene::with_single_writes()] {
        let outcome = scene.frontier.atomic(|| {
            scene.set("a", 1);
            scene.set("b", 1);
            scene.set("a", 2);
        });
        outcome.expect("open");
        assert_eq!(scene.frontier.position(), 2);
        scene.frontier.wait().await.expect("durable");
        assert_eq!(scene.store.disk(), ["a=2", "b=1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_segment_within_a_segment_joins_it() {
    // D14.2
    let scene = Scene::with_batches();
    let outcome = scene.frontier.atomic(|| {
        scene.set("a", 1);
        let inner = scene.frontier.atomic(|| scene.set("b", 1));
        assert_eq!(inner.expect("open"), 2);
        assert_eq!(
            scene.owner.flushers(),
            0,
            "nothing leaves before the outermost ends"
        );
        scene.set("a", 2);
    });
    outcome.expect("open");
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["[a=2, b=1]"]);
}

#[tokio::test(start_paused = true)]
async fn rows_whose_order_matters_are_staged_anew() {
    let scene = Scene::with_single_writes();
    let staged = scene.frontier.segment(|segment| {
        segment.stage_anew(key("a"), Some(state(true, 1)));
        segment.stage(key("b"), Some(state(false, 1)));
        segment.stage_anew(key("a"), Some(state(false, 2)));
        segment.stage(key("a"), Some(state(false, 3)));
    });
    staged.expect("open");
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["a*=1", "b=1", "a=3"]);
}

#[tokio::test(start_paused = true)]
async fn a_segment_that_panics_half_way_leaves_nothing_and_ends_the_instance() {
    for effect in [false, true] {
        let scene = Scene::with_batches();
        scene.set("before", 1);
        scene.frontier.wait().await.expect("durable");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            scene.frontier.atomic(|| {
                scene.set("a", 1);
                if effect {
                    let _ = scene.frontier.enlist(async { Ok::<(), FrontierError>(()) });
                }
                let _ = scene.frontier.atomic(|| -> u64 { panic!("within") });
            })
        }));
        assert!(panicked.is_err());
        let error = scene.frontier.wait().await.expect_err("it was torn");
        assert!(matches!(error, FrontierError::Poisoned(_)), "{error:?}");
        scene.settle().await;
        assert_eq!(scene.store.disk(), ["before=1"]);
        assert_eq!(scene.owner.aborts(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_anything_has_changed_leaves_the_log_usable() {
    let scene = Scene::with_batches();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        scene
            .frontier
            .atomic(|| scene.frontier.atomic(|| -> u64 { panic!("within") }))
    }));
    assert!(panicked.is_err());
    assert_eq!(scene.set("b", 1), 1);
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.disk(), ["b=1"]);
    assert_eq!(scene.owner.aborts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_written_over_and_over_waits_as_one() {
    // D14.4
    let scene = Scene::with_batches();
    scene.store.hold();
    scene.set("first", 0);
    scene.store.parked().await;
    for n in 1..=100_000 {
        scene.set("a", n);
    }
    scene.set("b", 1);
    let log = scene.frontier.shared.log.lock();
    let places = log.queued(|unit| match unit {
        Unit::Rows(run) => run.kept(),
        Unit::Effect(_) => 0,
    });
    drop(log);
    assert!(places <= 5, "{places} places for two rows");
    scene.store.release();
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["[first=0]", "[a=100000, b=1]"]);
    assert_eq!(scene.frontier.position(), 100_002);
}
