//! How the log reaches the store.

use std::future::poll_fn;
use std::task::Poll;

use tokio::sync::oneshot;

use super::*;

/// An effect that says that it runs, and ends when it is told to.
fn gated(scene: &Scene) -> (Receipt, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let (started, starts) = oneshot::channel();
    let (end, ends) = oneshot::channel::<()>();
    let receipt = scene.frontier.enlist(async move {
        started.send(()).expect("awaited");
        ends.await
    });
    (receipt.expect("open"), starts, end)
}

#[tokio::test(start_paused = true)]
async fn one_flusher_runs_until_the_log_is_empty() {
    // D14.1
    for scene in [Scene::with_batches(), Scene::with_single_writes()] {
        scene.set("a", 1);
        scene.set("b", 1);
        scene.store.hold();
        scene.store.parked().await;
        scene.set("c", 1);
        assert_eq!(scene.owner.flushers(), 1);
        scene.store.release();
        scene.frontier.wait().await.expect("durable");
        scene.settle().await;
        assert_eq!(scene.owner.running(), 0);
        scene.set("a", 2);
        scene.frontier.wait().await.expect("durable");
        assert_eq!(scene.owner.flushers(), 2);
        assert_eq!(scene.owner.most_at_once(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_enlisted_without_yielding_is_one_step() {
    // D14.2
    let scene = Scene::with_batches();
    scene.set("a", 1);
    scene.set("b", 1);
    scene.set("c", 1);
    assert_eq!(scene.store.calls(), [""; 0]);
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["[a=1, b=1, c=1]"]);
}

#[tokio::test(start_paused = true)]
async fn without_batches_each_write_goes_out_by_itself_in_order() {
    // D14.3
    let scene = Scene::with_single_writes();
    scene.set("a", 1);
    scene.set("b", 1);
    scene.set("a", 2);
    scene.delete("b");
    scene.write("a", Some(state(true, 3)));
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["a=1", "b=1", "a=2", "-b", "a*=3"]);
    assert_eq!(scene.store.disk(), ["a*=3"]);
}

#[tokio::test(start_paused = true)]
async fn each_row_stands_at_the_place_of_its_last_write() {
    // D14.4, D19.6
    let scene = Scene::with_batches();
    scene.set("t1", 1);
    scene.set("t2", 1);
    scene.set("t1", 2);
    scene.frontier.wait().await.expect("durable");
    scene.set("t1", 3);
    scene.delete("t1");
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["[t2=1, t1=2]", "[-t1]"]);
}

#[tokio::test(start_paused = true)]
async fn the_order_of_last_writes_survives_the_clearing_of_places() {
    // D14.4
    let scene = Scene::with_batches();
    for n in 0..50 {
        for row in ["a", "b", "c"] {
            scene.set(row, n);
        }
    }
    scene.set("b", 50);
    scene.set("a", 50);
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["[c=49, b=50, a=50]"]);
}

// D14.1: whoever writes again as soon as the write before is durable keeps one flusher busy.
#[tokio::test(start_paused = true)]
async fn a_flusher_lingers_for_those_whom_it_has_just_told() {
    let scene = Scene::with_batches();
    for n in 0..10 {
        scene.set("a", n);
        scene.frontier.wait().await.expect("durable");
    }
    assert_eq!((scene.owner.flushers(), scene.owner.running()), (1, 1));
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    assert_eq!((scene.owner.flushers(), scene.owner.running()), (1, 0));
    scene.set("a", 10);
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.owner.flushers(), 2);
}

// D14.1: it would be its turn again once none of the others is ready.
#[tokio::test(start_paused = true)]
async fn what_is_enlisted_while_a_flusher_lingers_does_not_wait_for_all_other_tasks() {
    let scene = Scene::with_batches();
    let never_idle = async move {
        scene.set("a", 1);
        scene.frontier.wait().await.expect("durable");
        scene.set("a", 2);
        for _ in 0..10 {
            next_turn().await;
        }
        (scene.store.calls().len(), scene.owner.flushers())
    };
    let seen = Domain::real().spawn(never_idle).await;
    assert_eq!(seen.expect("it ends"), (2, 1));
}

/// Behind the tasks that are ready, and before the runtime looks for others.
async fn next_turn() {
    let mut waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

// D17.3: it has nothing to be cut short of.
#[tokio::test(start_paused = true)]
async fn a_flusher_that_is_dropped_while_it_lingers_leaves_a_sound_log() {
    let scene = Scene::with_batches();
    scene.set("a", 1);
    scene.frontier.wait().await.expect("durable");
    scene.owner.cut();
    tokio::task::yield_now().await;
    assert_eq!((scene.owner.aborts(), scene.owner.running()), (0, 0));
    scene.frontier.wait().await.expect("it has not failed");
    scene.set("a", 2);
    scene.frontier.wait().await.expect("another carries on");
    scene.set("a", 3);
    scene.owner.cut();
    scene.frontier.wait().await.expect_err("nobody wrote it");
    assert_eq!(scene.owner.aborts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_leaves_what_its_last_writes_leave() {
    // D19.5
    let scene = Scene::with_batches();
    scene.set("t1", 1);
    scene.write("t1", Some(state(true, 2)));
    scene.set("other", 1);
    scene.delete("other");
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.disk(), ["t1*=2"]);
}

#[tokio::test(start_paused = true)]
async fn an_effect_runs_between_what_is_before_it_and_what_is_after_it() {
    // D14.5, D19.7
    let scene = Scene::with_batches();
    scene.set("a", 1);
    let (receipt, started, end) = gated(&scene);
    let after = scene.set("b", 1);
    started.await.expect("it runs");
    assert_eq!(scene.store.disk(), ["a=1"]);
    assert_eq!(scene.store.calls(), ["[a=1]"]);
    assert!(scene.is_durable(1).await);
    assert!(!scene.is_durable(receipt.position()).await);
    end.send(()).expect("awaited");
    scene.frontier.wait_for(after).await.expect("durable");
    assert_eq!(scene.store.calls(), ["[a=1]", "[b=1]"]);
}

#[tokio::test(start_paused = true)]
async fn an_effect_within_a_segment_comes_after_what_was_changed_before_it() {
    // D14.5
    let scene = Scene::with_batches();
    let store = scene.store.clone();
    let outcome = scene.frontier.atomic(|| {
        scene.set("a", 1);
        let seen = async move {
            assert_eq!(store.disk(), ["a=1"]);
            Ok::<(), FrontierError>(())
        };
        let receipt = scene.frontier.enlist(seen).expect("open");
        assert_eq!(receipt.position(), 2);
        scene.set("a", 2);
    });
    outcome.expect("open");
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["[a=1]", "[a=2]"]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_on_its_way_takes_nothing_more_in() {
    // D14.6
    let scene = Scene::with_batches();
    scene.store.hold();
    scene.set("a", 1);
    scene.store.parked().await;
    scene.set("a", 2);
    scene.set("b", 1);
    scene.store.release();
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["[a=1]", "[a=2, b=1]"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_advances_by_the_writes_that_it_stands_for() {
    // D14.7
    let scene = Scene::with_batches();
    scene.store.hold();
    for n in 0..3 {
        scene.set("a", n);
    }
    scene.store.parked().await;
    scene.set("a", 3);
    let (last, next) = (scene.frontier.wait_for(3), scene.frontier.wait_for(4));
    scene.store.release_one();
    last.await.expect("durable");
    assert_eq!(scene.store.disk(), ["a=2"]);
    assert!(!scene.is_durable(4).await);
    scene.store.release();
    next.await.expect("durable");
}

#[tokio::test(start_paused = true)]
async fn writes_carry_the_epoch_of_the_moment_they_go_out() {
    // D14.8, D18.3
    let scene = Scene::with_single_writes();
    scene.store.hold();
    scene.set("a", 1);
    scene.set("b", 1);
    scene.store.parked().await;
    scene.frontier.advance_epoch(7);
    scene.frontier.advance_epoch(4);
    scene.store.release();
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.epochs(), [1, 7]);
    assert_eq!(scene.frontier.claim().epoch, 7);
}

#[tokio::test(start_paused = true)]
async fn what_comes_to_nothing_is_still_written_once() {
    // D14.9
    let scene = Scene::with_batches();
    scene.set("a", 1);
    scene.delete("a");
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["[-a]"]);
    scene.set("b", 1);
    scene.frontier.wait().await.expect("durable");
    scene.set("b", 1);
    scene.frontier.wait().await.expect("durable");
    assert_eq!(scene.store.calls(), ["[-a]", "[b=1]", "[b=1]"]);
}
