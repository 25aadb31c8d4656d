//! Where a log ends.

use futures_util::FutureExt;
use pinned_testing::capture_logs;
use tokio::sync::oneshot;

use super::store::Fault;
use super::*;
use crate::durability::FrontierFailure;

#[tokio::test(start_paused = true)]
async fn a_flusher_that_is_cut_in_a_store_operation_fails_the_log() {
    // D16.1, D17.3
    let scene = Scene::with_batches();
    scene.store.hold();
    scene.set("a", 1);
    scene.store.parked().await;
    let wait = scene.frontier.wait_for(1);
    scene.owner.cut();
    let error = wait.await.expect_err("cut");
    assert!(
        matches!(error.failure(), Some(FrontierFailure::Cancelled)),
        "{error:?}"
    );
    assert_eq!(scene.store.parked_now(), 0, "it holds nothing of the store");
    assert_eq!(scene.owner.aborts(), 1);

    // D17.3: a later activation's writes proceed.
    scene.store.release();
    let later = Scene::on(scene.store.clone(), 1);
    later.set("a", 2);
    later.frontier.wait().await.expect("durable");
}

#[tokio::test(start_paused = true)]
async fn a_flusher_that_is_taken_away_is_no_error_in_the_log() {
    // D16.7
    let logs = capture_logs();
    let scene = Scene::with_batches();
    scene.store.hold();
    scene.set("a", 1);
    scene.store.parked().await;
    scene.owner.cut();
    scene.settle().await;
    assert!(logs.find("can no longer be confirmed").is_none());

    let scene = Scene::with_batches();
    scene.store.fail_next(Fault::Rejected);
    scene.set("a", 1);
    scene.frontier.wait().await.expect_err("it failed");
    assert!(logs.find("can no longer be confirmed").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_log_whose_instance_is_gone_says_so() {
    let scene = Scene::with_batches();
    let Scene {
        frontier, owner, ..
    } = scene;
    drop(owner);
    let receipt = frontier.enlist(async { Ok::<(), FrontierError>(()) });
    let error = receipt.expect("open").await.expect_err("nobody runs it");
    assert!(matches!(error.failure(), Some(FrontierFailure::Cancelled)));
}

#[test]
fn a_flusher_that_cannot_be_started_fails_the_log() {
    // D16.1: outside a runtime.
    let scene = Scene::with_batches();
    scene.set("a", 1);
    let wait = scene.frontier.wait().now_or_never();
    assert!(matches!(wait, Some(Err(FrontierError::Poisoned(_)))));
    assert_eq!(scene.owner.aborts(), 1);
}

#[tokio::test(start_paused = true)]
async fn closing_lets_go_of_what_is_queued_and_fails_who_waits() {
    // D17.5, D17.6
    let scene = Scene::with_batches();
    scene.store.hold();
    scene.set("a", 1);
    scene.store.parked().await;
    let (ran, runs) = oneshot::channel();
    let effect = scene
        .frontier
        .enlist(async move { ran.send(()).map_err(|()| "nobody listens") });
    scene.set("b", 1);
    let waits = [scene.frontier.wait_for(1), scene.frontier.wait_for(3)];
    scene.frontier.close();
    for wait in waits {
        let error = wait.await.expect_err("closed");
        assert!(matches!(error, FrontierError::Closed), "{error:?}");
    }
    runs.await.expect_err("dropped without having run");
    effect
        .expect("it was open")
        .await
        .expect_err("closed since");

    scene.store.release();
    scene.settle().await;
    assert_eq!(
        scene.store.disk(),
        ["a=1"],
        "what was on its way goes its way"
    );
    assert_eq!((scene.owner.aborts(), scene.owner.running()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_closed_log_takes_nothing_and_starts_nothing() {
    // D17.6
    let scene = Scene::with_batches();
    scene.set("a", 1);
    scene.frontier.wait().await.expect("durable");
    scene.frontier.close();
    scene.frontier.close();
    let write = scene.try_write("b", None).map(|_| ());
    let effect = scene.frontier.enlist(async { Ok::<(), FrontierError>(()) });
    for outcome in [write, effect.map(|_| ()), scene.frontier.wait_for(2).await] {
        let error = outcome.expect_err("closed");
        assert!(matches!(error, FrontierError::Closed), "{error:?}");
        assert!(error.failure().is_none());
    }
    // What was durable before the end still is.
    scene.frontier.wait_for(1).await.expect("durable");
    scene.frontier.wait().await.expect("durable");
    scene.settle().await;
    assert_eq!(scene.owner.flushers(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_closed_within_a_segment_drops_what_was_staged() {
    // D17.5
    let scene = Scene::with_batches();
    let outcome = scene.frontier.atomic(|| {
        scene.set("a", 1);
        scene.frontier.close();
    });
    outcome.expect("it was open at the start");
    scene.settle().await;
    assert_eq!(scene.store.calls(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_is_let_go_of_may_use_its_own_log() {
    // D17.5: what an effect drops is the user's code.
    struct Asks(Frontier);
    impl Drop for Asks {
        fn drop(&mut self) {
            let _ = self.0.position();
            let _ = self.0.enlist(async { Ok::<(), FrontierError>(()) });
        }
    }
    let scene = Scene::with_batches();
    scene.store.hold();
    scene.set("a", 1);
    let asks = Asks(scene.frontier.clone());
    let effect = scene.frontier.enlist(async move {
        drop(asks);
        Ok::<(), FrontierError>(())
    });
    scene.frontier.close();
    effect.expect("it was open").await.expect_err("closed");
}
