//! How a log fails.

use std::error::Error;

use tokio::sync::oneshot;

use super::store::Fault;
use super::*;
use crate::durability::{FrontierFailure, StoreError};

#[tokio::test(start_paused = true)]
async fn a_failed_write_ends_the_log_and_aborts_the_instance_once() {
    // D16.1, D16.2, D16.5
    let scene = Scene::with_single_writes();
    scene.set("a", 1);
    scene.frontier.wait().await.expect("durable");
    scene.store.hold();
    scene.set("b", 1);
    scene.set("c", 1);
    let (second, third) = (scene.frontier.wait_for(2), scene.frontier.wait_for(3));
    scene.store.fail_next(Fault::Rejected);
    scene.store.parked().await;
    scene.store.release();
    for wait in [second, third] {
        let error = wait.await.expect_err("it failed");
        assert!(
            matches!(
                error.failure(),
                Some(FrontierFailure::Store(StoreError::Failed(_)))
            ),
            "{error:?}"
        );
    }
    scene.settle().await;
    assert_eq!(
        scene.store.calls(),
        ["a=1", "b=1"],
        "neither again nor on to the next"
    );
    assert_eq!(
        scene.store.disk(),
        ["a=1"],
        "what was durable before it stays"
    );
    assert_eq!((scene.owner.aborts(), scene.owner.running()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_everything_is_refused_and_links_the_cause() {
    // D16.3
    let scene = Scene::with_batches();
    scene.set("a", 1);
    scene.frontier.wait().await.expect("durable");
    scene.store.fail_next(Fault::Rejected);
    scene.set("b", 1);
    scene.frontier.wait().await.expect_err("it failed");
    let flushers = scene.owner.flushers();

    let durable = scene.frontier.wait_for(1).await;
    let latest = scene.frontier.wait().await;
    let write = scene.try_write("c", None).map(|_| ());
    let atomic = scene.frontier.atomic(|| panic!("it does not run"));
    let effect = scene.frontier.enlist(async {
        panic!("it does not run");
        #[allow(unreachable_code, reason = "names the type of its error")]
        Ok::<(), FrontierError>(())
    });
    for outcome in [durable, latest, write, atomic, effect.map(|_| ())] {
        let error = outcome.expect_err("the log has failed");
        assert!(matches!(error, FrontierError::Poisoned(_)), "{error:?}");
        let mut causes = std::iter::successors(error.source(), |error| (*error).source());
        assert!(causes.any(|cause| cause.to_string() == "out of order"));
    }
    assert_eq!(scene.owner.flushers(), flushers, "no other was started");
}

#[tokio::test(start_paused = true)]
async fn a_failed_effect_ends_the_log_and_what_is_behind_it_never_runs() {
    // D16.1
    let scene = Scene::with_batches();
    let first = scene.frontier.enlist(async { Err("no connection") });
    let (ran, runs) = oneshot::channel();
    let second = scene
        .frontier
        .enlist(async move { ran.send(()).map_err(|()| "nobody listens") });
    let first = first.expect("open").await.expect_err("it failed");
    assert!(
        matches!(first.failure(), Some(FrontierFailure::Effect(_))),
        "{first:?}"
    );
    second.expect("open").await.expect_err("it never ran");
    runs.await.expect_err("dropped without having run");
    assert_eq!(scene.owner.aborts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_an_effect_or_of_the_store_is_its_failure() {
    // D16.1
    let scene = Scene::with_batches();
    let receipt = scene.frontier.enlist(async {
        panic!("a bug of the effect");
        #[allow(unreachable_code, reason = "names the type of its error")]
        Ok::<(), FrontierError>(())
    });
    let error = receipt.expect("open").await.expect_err("it panicked");
    let Some(FrontierFailure::Effect(cause)) = error.failure() else {
        panic!("{error:?}");
    };
    assert_eq!(cause.to_string(), "it panicked: a bug of the effect");

    let scene = Scene::with_batches();
    scene.store.fail_next(Fault::Panic);
    scene.set("a", 1);
    let error = scene.frontier.wait().await.expect_err("it panicked");
    let Some(FrontierFailure::Store(StoreError::Failed(cause))) = error.failure() else {
        panic!("{error:?}");
    };
    assert_eq!(cause.to_string(), "it panicked: a bug of the store");
    assert_eq!(scene.owner.aborts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_was_superseded_learns_it_and_changes_nothing() {
    // D16.4
    let older = Scene::with_batches();
    older.set("a", 1);
    older.frontier.wait().await.expect("durable");
    let newer = Scene::on(older.store.clone(), 2);
    newer.set("a", 2);
    newer.frontier.wait().await.expect("durable");

    older.set("a", 3);
    let error = older.frontier.wait().await.expect_err("fenced off");
    let lost = error.fence_lost().expect("the fence");
    assert_eq!((&lost.instance, lost.epoch), (&instance(), 1));
    assert_eq!((older.owner.aborts(), newer.owner.aborts()), (1, 0));
    assert_eq!(older.store.disk(), ["a=2"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_gives_up_after_a_stall_fails_the_log_and_a_successor_serves() {
    // D16.6
    let scene = Scene::with_batches();
    scene.store.hold();
    scene.store.fail_next(Fault::Rejected);
    scene.set("a", 1);
    let wait = scene.frontier.wait();
    let (outcome, ()) = tokio::join!(wait, async {
        scene.store.parked().await;
        Domain::real().sleep(NEVER).await;
        scene.store.release();
    });
    outcome.expect_err("it failed");
    assert_eq!(scene.owner.aborts(), 1);
    let successor = Scene::on(scene.store.clone(), 2);
    successor.set("a", 2);
    successor.frontier.wait().await.expect("durable");
}

#[tokio::test(start_paused = true)]
async fn the_log_can_be_failed_from_outside_within_a_segment_too() {
    // D16.1
    let scene = Scene::with_batches();
    let outcome = scene.frontier.atomic(|| {
        scene.set("a", 1);
        scene.frontier.fail("it cannot be written down".into());
        scene.frontier.fail("and again".into());
        scene.try_write("b", None).expect_err("failed already");
    });
    outcome.expect("it was open at the start");
    let error = scene.frontier.wait().await.expect_err("failed");
    assert!(matches!(error, FrontierError::Poisoned(_)), "{error:?}");
    scene.settle().await;
    assert_eq!(
        scene.store.calls(),
        [""; 0],
        "what the segment had staged goes too"
    );
    assert_eq!((scene.owner.aborts(), scene.owner.flushers()), (1, 0));
}
