//! After a worker would not run a request (P5.9, P5.10).

use std::sync::Arc;

use pinboard::metrics::Resolution;
use pinboard::placement::{NotPlaced, Placed, WorkerRefusal};
use pinboard::store::{Claim, Claimed, EndMode, EventKind, Expected, Fence};
use pinned_domain::TaskHandle;

use super::scene::*;
use super::spy::Hold;

/// Says on a task of its own that `placed` was refused.
fn refused(
    node: &Node,
    placed: &Arc<Placed>,
    refusal: WorkerRefusal,
) -> TaskHandle<Result<Option<Arc<Placed>>, NotPlaced>> {
    let (placement, placed) = (node.placement.clone(), Arc::clone(placed));
    node.domain
        .spawn(async move { placement.after_refusal(&placed, refusal).await })
}

// P5.9
#[test]
fn an_id_that_is_not_resident_is_freed_and_placed_on_another() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        fleet.worker("b").await;
        let node = fleet.node().await;
        let first = node.resolve("blue").await.expect("it is placed");
        let refusals: Vec<_> = (0..50)
            .map(|_| refused(&node, &first, WorkerRefusal::NotResident))
            .collect();
        let mut epochs = Vec::new();
        for refusal in refusals {
            let again = refusal.await.expect("it runs").expect("there is another");
            let again = again.expect("it is placed there");
            assert_ne!(again.worker.id, first.worker.id);
            epochs.push(again.epoch);
        }
        epochs.dedup();
        assert_eq!(epochs.len(), 1, "all go to one holder");
        assert_eq!(node.store.count("release"), 1, "and share the work");
        assert_eq!(node.told(), [EventKind::Placed, EventKind::Placed]);
        let row = fleet.row(&key("blue")).await.expect("it is held");
        assert_eq!(row.epoch, epochs[0]);
    });
}

// What is being found out may be older than the refusal.
#[test]
fn a_refused_request_does_not_wait_for_what_was_asked_before_its_refusal() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        fleet.worker("b").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        node.placement.forget(&placed);
        // It has read the row, and its answer is under way.
        let gate = node.store.hold("claim", Hold::After);
        let before = node.resolving("blue");
        gate.reached().await;
        let refused = refused(&node, &placed, WorkerRefusal::NotResident);
        gate.reached().await;
        node.store.release_holds();
        let after = refused.await.expect("it runs").expect("there is another");
        assert_ne!(after.expect("placed").worker.id, placed.worker.id);
        let before = before.await.expect("it runs").expect("it was held");
        assert_eq!(before.epoch, placed.epoch, "it could not know");
    });
}

// P5.9: the row is freed only if it still names that session and that epoch.
#[test]
fn a_refusal_of_what_has_moved_long_since_moves_nothing() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        fleet.worker("b").await;
        let node = fleet.node().await;
        let first = node.resolve("blue").await.expect("it is placed");
        let other_node = fleet.node().await;
        let moved = other_node
            .placement
            .after_refusal(&first, WorkerRefusal::NotResident)
            .await;
        let moved = moved.expect("there is another").expect("it is placed");
        let late = node
            .placement
            .after_refusal(&first, WorkerRefusal::NotResident)
            .await;
        let late = late.expect("it is held").expect("by another");
        assert_eq!(
            (&late.worker.id, late.epoch),
            (&moved.worker.id, moved.epoch)
        );
        // And once that is known, without asking.
        node.store.forget_counts();
        let later = node
            .placement
            .after_refusal(&first, WorkerRefusal::NotResident)
            .await;
        assert!(Arc::ptr_eq(
            &late,
            &later.expect("it is known").expect("it")
        ));
        assert_eq!(node.store.round_trips(), 0);
    });
}

// P5.9
#[test]
fn the_refusal_of_the_only_worker_stands() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("only").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        let after = node
            .placement
            .after_refusal(&placed, WorkerRefusal::NotResident)
            .await;
        assert!(after.expect("no error").is_none());
        assert_eq!(fleet.row(&key("blue")).await, None, "the row is free");
        // The next request tries it again.
        assert!(node.resolve("blue").await.is_ok());
    });
}

// P5.10
#[test]
fn a_row_that_names_another_holder_is_followed_at_once() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let old = fleet.worker("old").await;
        let node = fleet.silent_node().await;
        let stale = node.resolve("blue").await.expect("it is placed");
        let new = fleet.worker("new").await;
        fleet.end(&old, EndMode::Now).await;
        let claim = Claim {
            key: key("blue"),
            candidate: new.id.clone(),
            expected: Expected::HeldByDead {
                session: old.id.clone(),
                epoch: stale.epoch,
            },
            above: 0,
        };
        let claimed = fleet.store().claim(claim).await.expect("answers");
        assert!(matches!(claimed, Claimed::Placed { .. }), "{claimed:?}");
        let before = fleet.domain.monotonic();
        let after = node
            .placement
            .after_refusal(&stale, WorkerRefusal::Moving)
            .await;
        let after = after.expect("it is held").expect("by another");
        assert_eq!(after.worker.id, new.id);
        assert_eq!(fleet.domain.monotonic(), before);
    });
}

// P5.10: a release in flight during a rolling deploy.
#[test]
fn a_row_that_is_about_to_move_is_waited_for() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let mut old = fleet.worker("old").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        fleet.domain.sleep(2 * SECOND).await;
        let new = fleet.worker("new").await;
        old.record.update.draining = true;
        fleet.beat(&old).await;
        node.read().await;
        let before = fleet.domain.monotonic();
        let waiting: Vec<_> = (0..20)
            .map(|_| refused(&node, &placed, WorkerRefusal::Moving))
            .collect();
        fleet.domain.sleep(ms(1_300)).await;
        fleet.release(&placed).await;
        for waiting in waiting {
            let moved = waiting.await.expect("it runs").expect("it is placed");
            assert_eq!(moved.expect("elsewhere").worker.id, new.id);
        }
        // The store told; nobody slept on.
        assert_eq!(fleet.domain.monotonic() - before, ms(1_300));
        assert!(
            node.store.count("claim") < 20,
            "one looks for all: {}",
            node.store.count("claim")
        );
    });
}

// P5.10
#[test]
fn without_word_from_the_store_the_row_is_looked_at_again_and_again() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("old").await;
        let node = fleet.silent_node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        fleet.domain.sleep(2 * SECOND).await;
        let new = fleet.worker("new").await;
        node.read().await;
        let before = fleet.domain.monotonic();
        let waiting = refused(&node, &placed, WorkerRefusal::Moving);
        fleet.domain.sleep(ms(700)).await;
        fleet.release(&placed).await;
        let moved = waiting.await.expect("it runs").expect("it is placed");
        assert_eq!(moved.expect("elsewhere").worker.id, new.id);
        let took = fleet.domain.monotonic() - before;
        assert!(took <= ms(950), "{took:?}");
    });
}

// P5.10
#[test]
fn a_row_that_does_not_move_is_waited_for_two_seconds() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        fleet.worker("b").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        let before = fleet.domain.monotonic();
        let first = refused(&node, &placed, WorkerRefusal::Moving);
        fleet.domain.sleep(ms(1_500)).await;
        // One that comes later has its own two seconds, of the same looking.
        let second = refused(&node, &placed, WorkerRefusal::Moving);
        let outcome = first.await.expect("it runs");
        assert!(outcome.expect("no error").is_none());
        assert_eq!(fleet.domain.monotonic() - before, 2 * SECOND);
        let outcome = second.await.expect("it runs");
        assert!(outcome.expect("no error").is_none());
        assert_eq!(fleet.domain.monotonic() - before, ms(3_500));
        assert!(node.store.count("claim") <= 25);
        sim.advance(SECOND).await;
        assert!(format!("{:?}", node.placement).contains("under_way: 0"));
        // It is where it was.
        let again = node.resolve("blue").await.expect("it is held");
        assert_eq!(again.epoch, placed.epoch);
    });
}

// P5.10: an instance that closes on the only worker there is comes back on it.
#[test]
fn an_id_that_closes_on_the_only_worker_is_placed_there_anew() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let only = fleet.worker("only").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        fleet.domain.sleep(2 * SECOND).await;
        let waiting = refused(&node, &placed, WorkerRefusal::Moving);
        fleet.domain.sleep(ms(40)).await;
        fleet.release(&placed).await;
        let again = waiting.await.expect("it runs").expect("it is placed");
        let again = again.expect("anew");
        assert_eq!(again.worker.id, only.id);
        assert!(again.epoch > placed.epoch);
    });
}

// P5.10, P4.2
#[test]
fn a_holder_that_dies_while_its_row_is_waited_for_loses_it() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let old = fleet.worker("old").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        let new = fleet.worker("new").await;
        node.read().await;
        let waiting = refused(&node, &placed, WorkerRefusal::Moving);
        fleet.domain.sleep(ms(500)).await;
        fleet.end(&old, EndMode::Now).await;
        node.read().await;
        let moved = waiting.await.expect("it runs").expect("it is placed");
        assert_eq!(moved.expect("elsewhere").worker.id, new.id);
        assert_eq!(node.resolved(Resolution::Replaced), 1);
    });
}

// P3.5
#[test]
fn a_fence_that_stands_ends_the_wait() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        let fence = Fence {
            starts_in: ms(500),
            ends_in: 10 * SECOND,
        };
        fleet
            .store()
            .fence(&key("blue"), Some(fence))
            .await
            .expect("answers");
        let waiting = refused(&node, &placed, WorkerRefusal::Moving);
        let outcome = waiting.await.expect("it runs");
        assert!(matches!(outcome, Err(NotPlaced::Fenced(_))), "{outcome:?}");
    });
}
