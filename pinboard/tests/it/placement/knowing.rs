//! What a node knows, and forgets (P5.7).

use std::sync::Arc;

use pinboard::metrics::Resolution;
use pinboard::store::{Claim, Claimed, EndMode, Expected, Invalidation, Release};

use super::scene::*;
use super::spy::Hold;

// P5.7
#[test]
fn a_known_id_makes_no_round_trip() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        node.store.forget_counts();
        for _ in 0..100 {
            let again = node.resolve("blue").await.expect("it is known");
            assert!(Arc::ptr_eq(&placed, &again));
        }
        assert!(Arc::ptr_eq(
            &placed,
            &node.known("blue").expect("it is known")
        ));
        assert_eq!(node.store.round_trips(), 0);
        assert_eq!(node.resolved(Resolution::Cached), 101);
    });
}

// P5.7
#[test]
fn what_the_store_says_has_changed_is_forgotten() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        node.resolve("red").await.expect("it is placed");
        fleet.release(&placed).await;
        sim.advance(ms(1)).await;
        assert!(node.known("blue").is_none());
        assert!(node.known("red").is_some(), "it has not changed");
    });
}

// P5.7: the worker's session may have ended without a row having changed.
#[test]
fn a_holder_that_has_ended_is_not_gone_to() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let node = fleet.node().await;
        node.resolve("blue").await.expect("it is placed");
        fleet.end(&worker, EndMode::Now).await;
        node.read().await;
        assert!(node.known("blue").is_none());
    });
}

// A row that is read while its invalidation is under way must not be remembered.
#[test]
fn what_changed_while_it_was_read_is_not_remembered() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let (old, new) = (fleet.worker("old").await, fleet.worker("new").await);
        let claim = |session: &Session| Claim {
            key: key("blue"),
            candidate: session.id.clone(),
            expected: Expected::Vacant,
            above: 0,
        };
        let claimed = fleet.store().claim(claim(&old)).await.expect("answers");
        let Claimed::Placed { epoch, .. } = claimed else {
            panic!("{claimed:?}");
        };
        let node = fleet.node().await;
        // The answer is under way; what it says is about to become false.
        let gate = node.store.hold("claim", Hold::After);
        let reading = node.resolving("blue");
        gate.reached().await;
        fleet.domain.sleep(ms(1_500)).await;
        let release = Release {
            session: old.id.clone(),
            key: key("blue"),
            epoch: Some(epoch),
        };
        assert_eq!(fleet.store().release(&[release]).await.expect("answers"), 1);
        let claimed = fleet.store().claim(claim(&new)).await.expect("answers");
        assert!(matches!(claimed, Claimed::Placed { .. }), "{claimed:?}");
        sim.advance(ms(1)).await;
        node.store.release_holds();
        let read = reading.await.expect("it runs").expect("it was held");
        assert_eq!(read.worker.id, old.id, "as it was read");
        assert!(node.known("blue").is_none(), "and not remembered");
    });
}

#[test]
fn what_is_in_doubt_is_asked_for_again() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        node.resolve("blue").await.expect("it is placed");
        node.store.tell(Invalidation::Everything).await;
        sim.advance(ms(1)).await;
        assert!(node.known("blue").is_none());
        node.store.forget_counts();
        node.resolve("blue").await.expect("it is held");
        assert_eq!(node.store.round_trips(), 1);
        assert!(node.known("blue").is_some());
    });
}

#[test]
fn what_was_read_while_everything_came_into_doubt_is_in_doubt() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        let gate = node.store.hold("claim", Hold::After);
        let reading = node.resolving("blue");
        gate.reached().await;
        node.store.tell(Invalidation::Everything).await;
        sim.advance(ms(1)).await;
        node.store.release_holds();
        reading.await.expect("it runs").expect("it is placed");
        assert!(node.known("blue").is_none());
    });
}

// P5.7: a bound of 1 s where tracking is not there.
#[test]
fn with_a_store_that_does_not_tell_what_is_known_is_trusted_for_a_second() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.silent_node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        fleet.release(&placed).await;
        fleet.domain.sleep(SECOND - ms(1)).await;
        assert!(node.known("blue").is_some());
        fleet.domain.sleep(ms(1)).await;
        assert!(node.known("blue").is_none());
        let again = node.resolve("blue").await.expect("it is placed");
        assert!(again.epoch > placed.epoch);
    });
}

#[test]
fn when_nobody_listens_any_more_what_is_known_is_in_doubt() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let mut node = fleet.node().await;
        node.resolve("blue").await.expect("it is placed");
        node.stop_listening();
        sim.advance(ms(1)).await;
        assert!(node.known("blue").is_none());
        let placed = node.resolve("blue").await.expect("it is held");
        assert!(node.known("blue").is_some(), "for a second");
        sim.advance(SECOND).await;
        assert!(node.known("blue").is_none());
        // It can be listened to again, and what went by unheard is not trusted.
        fleet.release(&placed).await;
        node.listen();
        sim.advance(ms(1)).await;
        assert!(node.known("blue").is_none());
        node.resolve("blue").await.expect("it is placed");
        sim.advance(2 * SECOND).await;
        assert!(node.known("blue").is_some());
    });
}

#[test]
fn only_what_was_meant_is_forgotten() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        let old = node.resolve("blue").await.expect("it is placed");
        fleet.release(&old).await;
        sim.advance(ms(1)).await;
        let new = node.resolve("blue").await.expect("it is placed");
        node.placement.forget(&old);
        assert!(node.known("blue").is_some());
        node.placement.forget(&new);
        assert!(node.known("blue").is_none());
    });
}

// P5.8: the caller must be a row that the session holds.
#[test]
fn whether_a_session_holds_an_id_is_told_without_placing_it() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let other = fleet.worker("b").await;
        let node = fleet.node().await;
        let held = node.placement.is_held_by(&key("blue"), &worker.id).await;
        assert_eq!(held, Ok(false));
        assert_eq!(fleet.row(&key("blue")).await, None);
        let claim = Claim {
            key: key("blue"),
            candidate: worker.id.clone(),
            expected: Expected::Vacant,
            above: 0,
        };
        fleet.store().claim(claim).await.expect("answers");
        let held = node.placement.is_held_by(&key("blue"), &worker.id).await;
        assert_eq!(held, Ok(true));
        node.store.forget_counts();
        let held = node.placement.is_held_by(&key("blue"), &worker.id).await;
        assert_eq!(held, Ok(true));
        assert_eq!(node.store.round_trips(), 0, "it is known now");
        let held = node.placement.is_held_by(&key("blue"), &other.id).await;
        assert_eq!(held, Ok(false));
        assert_eq!(node.store.round_trips(), 1, "it might have moved");
    });
}

// P5.8: a caller is not turned away for what this node knew before the caller moved.
#[test]
fn a_caller_that_has_just_moved_is_known_by_its_new_session() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let other = fleet.worker("b").await;
        let node = fleet.node().await;
        let claim = |candidate: &pinboard::store::SessionId| Claim {
            key: key("blue"),
            candidate: candidate.clone(),
            expected: Expected::Vacant,
            above: 0,
        };
        fleet
            .store()
            .claim(claim(&worker.id))
            .await
            .expect("answers");
        let held = node.placement.is_held_by(&key("blue"), &worker.id).await;
        assert_eq!(held, Ok(true));
        // Nothing is awaited between the move and the question that would let the node hear of it.
        let release = [pinboard::store::Release {
            session: worker.id.clone(),
            key: key("blue"),
            epoch: None,
        }];
        fleet.store().release(&release).await.expect("answers");
        let mut anyone = claim(&other.id);
        anyone.expected = Expected::VacantForAnyone;
        fleet.store().claim(anyone).await.expect("answers");
        let held = node.placement.is_held_by(&key("blue"), &other.id).await;
        assert_eq!(held, Ok(true));
    });
}

#[test]
fn a_worker_at_other_addresses_is_gone_to_there() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let mut worker = fleet.worker("a").await;
        let node = fleet.node().await;
        let before = node.resolve("blue").await.expect("it is placed");
        worker.record.update.moved_to = Some(vec![([127, 0, 0, 2], 9_000).into()]);
        fleet.beat(&worker).await;
        node.read().await;
        let after = node.resolve("blue").await.expect("it is held");
        assert!(!Arc::ptr_eq(&before.worker, &after.worker));
        assert_eq!(
            (&before.worker.id, before.epoch),
            (&after.worker.id, after.epoch)
        );
    });
}
