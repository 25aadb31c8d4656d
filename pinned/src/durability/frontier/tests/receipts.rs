//! What a receipt promises.

use futures_util::FutureExt;

use super::store::Fault;
use super::*;

#[tokio::test(start_paused = true)]
async fn a_receipt_stands_for_what_was_enlisted_before_it() {
    // D15.1, D15.2
    let scene = Scene::with_single_writes();
    scene.store.hold();
    scene.set("a", 1);
    scene.set("b", 1);
    let receipt = scene.frontier.receipt();
    scene.set("c", 1);
    scene.store.parked().await;
    let wait = receipt.into_future();
    scene.store.release_one();
    scene.settle().await;
    scene.store.release_one();
    wait.await.expect("durable");
    assert_eq!(scene.store.disk(), ["a=1", "b=1"]);
}

#[tokio::test(start_paused = true)]
async fn a_receipt_may_be_awaited_again_or_dropped() {
    // D15.1
    let scene = Scene::with_batches();
    scene.set("a", 1);
    drop(scene.frontier.receipt());
    let receipt = scene.frontier.receipt();
    (&receipt).await.expect("durable");
    (&receipt).await.expect("durable");
    receipt.await.expect("durable");
    assert_eq!(scene.store.disk(), ["a=1"]);
}

#[tokio::test(start_paused = true)]
async fn the_receipt_of_an_effect_stands_for_that_effect_alone() {
    // D15.1
    let scene = Scene::with_batches();
    let receipt = scene.frontier.enlist(async { Ok::<(), FrontierError>(()) });
    scene.store.hold();
    scene.set("a", 1);
    receipt.expect("open").await.expect("it ran");
    assert_eq!(scene.store.disk(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_confirmed_is_read_by_whoever_comes_later() {
    // D15.3
    for scene in [Scene::with_batches(), Scene::with_single_writes()] {
        scene.set("a", 1);
        scene.set("b", 2);
        scene.frontier.wait().await.expect("durable");
        // Killed with one more write on its way.
        scene.store.hold();
        scene.set("a", 3);
        scene.store.parked().await;
        scene.owner.cut();
        scene.settle().await;
        scene.store.release();
        let later = Scene::on(scene.store.clone(), 2);
        assert_eq!(later.store.disk(), ["a=1", "b=2"]);
        later.set("a", 4);
        later.frontier.wait().await.expect("durable");
        assert_eq!(later.store.disk(), ["a=4", "b=2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_receipt_that_failed_says_nothing_of_whether_it_landed() {
    // D15.4
    for (fault, disk) in [(Fault::Rejected, vec![]), (Fault::AnswerLost, vec!["a=1"])] {
        let scene = Scene::with_batches();
        scene.store.fail_next(fault);
        scene.set("a", 1);
        let error = scene.frontier.wait().await.expect_err("it failed");
        assert!(matches!(error, FrontierError::Failed(_)), "{error:?}");
        assert_eq!(scene.store.disk(), disk);
    }
}

#[tokio::test(start_paused = true)]
async fn a_receipt_does_not_wait_for_what_comes_after_it() {
    // D15.2
    let scene = Scene::with_batches();
    scene.set("a", 1);
    let receipt = scene.frontier.receipt();
    receipt.await.expect("durable");
    scene.store.hold();
    scene.set("a", 2);
    let earlier = scene.frontier.wait_for(1).now_or_never();
    assert!(matches!(earlier, Some(Ok(()))));
}
