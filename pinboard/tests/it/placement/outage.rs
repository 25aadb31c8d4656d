//! While the store is away (P12.4).

use std::sync::Arc;

use pinboard::placement::{NotPlaced, WorkerRefusal};
use pinboard::store::{Claim, EndMode, Expected, Invalidation};

use super::scene::*;
use super::spy::Hold;

// P12.4
#[test]
fn known_placements_serve_until_their_leases_end_and_unknown_ids_do_not() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let node = fleet.node().await;
        let reading = node.keep_reading();
        let placed = node.resolve("blue").await.expect("it is placed");
        fleet.beat(&worker).await;
        fleet.domain.sleep(SECOND).await;
        // The connection breaks: the store says that anything may have changed, and answers nothing.
        node.store.set_away(true);
        node.store.tell(Invalidation::Everything).await;
        sim.advance(ms(1)).await;
        let lease_ends = worker_lease(&node);
        let again = node.resolve("blue").await.expect("it is served");
        assert_eq!(again.epoch, placed.epoch);
        assert_eq!(node.resolve("red").await.err(), Some(NotPlaced::StoreAway));
        assert!(!node.workers.store_answers());
        // Once that is known, no request waits for the store.
        node.store.forget_counts();
        assert!(node.resolve("blue").await.is_ok());
        assert_eq!(node.store.round_trips(), 0);
        fleet.domain.sleep(lease_ends - ms(5)).await;
        assert!(node.resolve("blue").await.is_ok());
        fleet.domain.sleep(ms(5)).await;
        assert_eq!(node.resolve("blue").await.err(), Some(NotPlaced::StoreAway));
        reading.abort();
    });
}

/// What is left of the one worker's lease.
fn worker_lease(node: &Node) -> std::time::Duration {
    node.workers.all()[0].lease_left(node.domain.monotonic())
}

// P4.4, P4.6: a worker that is alive, as far as this node has read, handed the id over after the copy was made.
#[test]
fn a_row_that_a_copy_brings_back_is_no_place_for_a_request() {
    simulate(|sim| async move {
        let fleet = Arc::new(Fleet::new(sim.domain()).await);
        let former = fleet.worker("a").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        let latter = fleet.worker("b").await;
        node.read().await;
        fleet
            .go_back(async {
                fleet.release(&placed).await;
                fleet.end(&former, EndMode::AtExpiry).await;
                let moved = fleet.node().await.resolve("blue").await;
                assert_eq!(holder(&moved.expect("it is placed")), latter.id.as_str());
            })
            .await;
        sim.advance(ms(1)).await;
        // It has not read of the restart.
        assert!(node.workers.get(&former.id).is_some());
        let refused = node.resolve("blue").await.err();
        assert!(
            matches!(refused, Some(NotPlaced::Quarantined(_))),
            "{refused:?}"
        );
        let held = node.placement.is_held_by(&key("blue"), &former.id).await;
        assert_eq!(held.ok(), Some(false));
        // Nobody has brought it along by the end of the quarantine, and it goes to whoever lives.
        let next = fleet.worker("c").await;
        node.read().await;
        let anew = node.resolve("blue").await.expect("it is placed");
        assert_eq!(holder(&anew), next.id.as_str());
        assert!(anew.epoch > placed.epoch);
        let held = node.placement.is_held_by(&key("blue"), &next.id).await;
        assert_eq!(held.ok(), Some(true));
    });
}

// P12.4: service returns by itself.
#[test]
fn once_the_store_is_back_everything_is_as_before() {
    simulate(|sim| async move {
        let fleet = Arc::new(Fleet::new(sim.domain()).await);
        let worker = fleet.worker("a").await;
        let beating = fleet.keep_alive(&worker);
        let node = fleet.node().await;
        let reading = node.keep_reading();
        let placed = node.resolve("blue").await.expect("it is placed");
        node.store.set_away(true);
        node.store.tell(Invalidation::Everything).await;
        fleet.domain.sleep(TTL + SECOND).await;
        assert!(node.resolve("blue").await.is_err());
        assert!(node.workers.all().is_empty());
        node.store.set_away(false);
        fleet.domain.sleep(SECOND).await;
        assert!(node.workers.store_answers());
        let again = node.resolve("blue").await.expect("it is held");
        assert_eq!(again.epoch, placed.epoch, "nobody took it meanwhile");
        assert!(node.resolve("red").await.is_ok());
        reading.abort();
        beating.abort();
    });
}

// P12.3: a store behind a broken network answers nothing at all.
#[test]
fn a_store_that_is_silent_is_away_after_two_seconds() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        node.resolve("blue").await.expect("it is placed");
        node.store.tell(Invalidation::Everything).await;
        sim.advance(ms(1)).await;
        for op in ["claim", "row", "release", "sessions_since"] {
            node.store.hold(op, Hold::Before);
        }
        let before = fleet.domain.monotonic();
        let resolving = node.resolving("red");
        assert!(node.resolve("blue").await.is_ok(), "it is known");
        assert_eq!(fleet.domain.monotonic() - before, 2 * SECOND);
        assert!(node.resolve("blue").await.is_ok());
        assert_eq!(fleet.domain.monotonic() - before, 2 * SECOND);
        let resolved = resolving.await.expect("it runs");
        assert_eq!(resolved.err(), Some(NotPlaced::StoreAway));
    });
}

// P12.4, P3.5: a fence that this node knows of holds without the store.
#[test]
fn a_fence_stands_although_the_store_is_away() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let claim = Claim {
            key: key("blue"),
            candidate: worker.id.clone(),
            expected: Expected::Vacant,
            above: 0,
        };
        fleet.store().claim(claim).await.expect("answers");
        let fence = pinboard::store::Fence {
            starts_in: 4 * SECOND,
            ends_in: 8 * SECOND,
        };
        fleet
            .store()
            .fence(&key("blue"), Some(fence))
            .await
            .expect("answers");
        let node = fleet.node().await;
        node.resolve("blue").await.expect("the fence is ahead");
        node.store.set_away(true);
        fleet.domain.sleep(4 * SECOND).await;
        assert_eq!(node.resolve("blue").await.err(), Some(NotPlaced::StoreAway));
    });
}

#[test]
fn before_the_sessions_were_ever_read_nothing_is_a_namespace_that_nobody_serves() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let node = Node::new(
            super::spy::Spy::new(fleet.handle()),
            &fleet.domain,
            settings(),
        );
        node.store.set_away(true);
        assert!(!node.workers.is_primed());
        assert_eq!(node.resolve("blue").await.err(), Some(NotPlaced::StoreAway));
    });
}

#[test]
fn a_refusal_while_the_store_is_away_leads_nowhere_else() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        fleet.worker("b").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        node.store.set_away(true);
        for refusal in [WorkerRefusal::NotResident, WorkerRefusal::Moving] {
            let after = node.placement.after_refusal(&placed, refusal).await;
            assert_eq!(after.err(), Some(NotPlaced::StoreAway));
        }
    });
}
