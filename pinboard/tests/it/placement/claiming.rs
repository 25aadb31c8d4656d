//! Placing, and finding who holds (P4.2 to P4.5).

use pinboard::metrics::Resolution;
use pinboard::placement::{NotPlaced, WorkerRefusal};
use pinboard::store::{
    Claim, Claimed, EndMode, EventKind, Expected, Fence, PlacementKey, Reclaimed,
};

use super::scene::*;
use super::spy::Hold;

// P4.2
#[test]
fn an_unplaced_id_takes_one_round_trip_and_is_told_of() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let node = fleet.node().await;
        node.store.forget_counts();
        let placed = node.resolve("blue").await.expect("it is placed");
        assert_eq!(placed.worker.id, worker.id);
        assert_eq!(placed.epoch_header, placed.epoch.to_string());
        assert_eq!(node.store.round_trips(), 1);
        assert_eq!(node.store.count("sessions_since"), 0);
        assert_eq!(node.resolved(Resolution::Placed), 1);
        let events = node.events.take();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].kind, EventKind::Placed);
        assert_eq!(events[0].id.as_deref(), Some("blue"));
        assert!(events[0].namespaces.iter().map(|ns| &**ns).eq([NS]));
        assert_eq!(events[0].epoch, Some(placed.epoch));
        assert_eq!(events[0].client_id.as_deref(), Some("client-a"));
    });
}

// P4.2: two nodes agree on one holder.
#[test]
fn what_one_node_has_placed_another_finds_in_one_round_trip() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        for name in ["a", "b", "c"] {
            fleet.worker(name).await;
        }
        let (one, other) = (fleet.node().await, fleet.node().await);
        for number in 0..30 {
            let id = format!("id-{number}");
            let first = one.resolve(&id).await.expect("it is placed");
            other.store.forget_counts();
            let second = other.resolve(&id).await.expect("it is held");
            assert_eq!(
                (&first.worker.id, first.epoch),
                (&second.worker.id, second.epoch)
            );
            assert_eq!(other.store.round_trips(), 1);
        }
        assert_eq!(other.resolved(Resolution::Held), 30);
        assert_eq!(other.resolved(Resolution::Placed), 0);
        assert_eq!(other.told(), [], "finding is no event");
        let promised: u64 = other.workers.all().iter().map(|w| w.promised()).sum();
        assert_eq!(promised, 0, "what others hold is no promise of this node's");
    });
}

#[test]
fn a_holder_that_this_node_has_not_read_of_is_read_of() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        // One that registers now, and is placed on by another node.
        let late = fleet.fresh_worker("late", 1_024).await;
        let claim = Claim {
            key: key("blue"),
            candidate: late.id.clone(),
            expected: Expected::Vacant,
            above: 0,
        };
        let claimed = fleet.store().claim(claim).await.expect("answers");
        assert!(matches!(claimed, Claimed::Placed { .. }));
        node.store.forget_counts();
        let placed = node.resolve("blue").await.expect("it is held");
        assert_eq!(placed.worker.id, late.id);
        assert_eq!(node.store.round_trips(), 1);
        assert_eq!(node.store.count("sessions_since"), 1);
    });
}

// P4.2, P4.3
#[test]
fn the_row_of_a_dead_session_is_taken_over_in_two_round_trips_at_a_higher_epoch() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let dead = fleet.worker("dead").await;
        let node = fleet.node().await;
        let before = node.resolve("blue").await.expect("it is placed");
        let heir = fleet.worker("heir").await;
        // Its last heartbeat was its registration.
        fleet.domain.sleep(TTL / 2).await;
        fleet.beat(&heir).await;
        fleet.domain.sleep(TTL / 2).await;
        node.read().await;
        assert!(node.workers.has_ended(&dead.id));
        node.store.forget_counts();
        assert!(node.known("blue").is_none(), "its holder's lease has ended");
        let after = node.resolve("blue").await.expect("it is taken over");
        assert_eq!(after.worker.id, heir.id);
        assert!(after.epoch > before.epoch);
        assert_eq!(node.store.round_trips(), 2);
        assert_eq!(node.store.count("sessions_since"), 0);
        assert_eq!(node.resolved(Resolution::Replaced), 1);
        assert_eq!(node.told(), [EventKind::Placed, EventKind::Replaced]);
    });
}

// P4.2: the store alone decides who is dead.
#[test]
fn a_lease_that_this_node_has_not_seen_renewed_is_not_taken_for_dead() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let holder = fleet.worker("holder").await;
        let other = fleet.worker("other").await;
        let node = fleet.node().await;
        let claim = Claim {
            key: key("blue"),
            candidate: holder.id.clone(),
            expected: Expected::Vacant,
            above: 0,
        };
        fleet.store().claim(claim).await.expect("answers");
        fleet.domain.sleep(TTL - SECOND).await;
        fleet.beat(&holder).await;
        fleet.beat(&other).await;
        fleet.domain.sleep(2 * SECOND).await;
        assert!(
            node.workers.get(&holder.id).is_none(),
            "as this node sees it"
        );
        let placed = node.resolve("blue").await.expect("it is held");
        assert_eq!(placed.worker.id, holder.id);
        assert_eq!(node.resolved(Resolution::Replaced), 0);
    });
}

// P4.2
#[test]
fn a_holder_that_drains_or_cannot_be_reached_keeps_its_ids() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let mut holder = fleet.worker("holder").await;
        let node = fleet.node().await;
        let before = node.resolve("blue").await.expect("it is placed");
        fleet.worker("other").await;
        holder.record.update.draining = true;
        holder.record.update.reachable = false;
        fleet.beat(&holder).await;
        let fresh = fleet.node().await;
        let after = fresh.resolve("blue").await.expect("it is held");
        assert_eq!(after.worker.id, holder.id);
        assert_eq!(after.epoch, before.epoch);
    });
}

#[test]
fn with_nobody_to_place_on_what_is_held_is_still_found() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let mut holder = fleet.worker("holder").await;
        fleet
            .node()
            .await
            .resolve("blue")
            .await
            .expect("it is placed");
        holder.record.update.draining = true;
        fleet.beat(&holder).await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is held");
        assert_eq!(placed.worker.id, holder.id);
        // P4.5
        assert_eq!(node.resolve("red").await.err(), Some(NotPlaced::NoWorkers));
        assert_eq!(node.resolved(Resolution::NoBackends), 1);
    });
}

// P5.1, P4.5
#[test]
fn a_namespace_that_nobody_ever_served_is_not_one_that_nobody_serves_now() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let node = fleet.node().await;
        let stray = PlacementKey::single("/nowhere", "blue");
        let resolved = node.placement.resolve(&stray).await;
        assert_eq!(resolved.err(), Some(NotPlaced::UnknownNamespace));
        fleet.end(&worker, EndMode::Now).await;
        node.read().await;
        assert_eq!(node.resolve("blue").await.err(), Some(NotPlaced::NoWorkers));
        assert_eq!(
            node.resolved(Resolution::NoBackends),
            1,
            "strangers' paths do not count"
        );
    });
}

#[test]
fn a_worker_that_registered_elsewhere_a_moment_ago_is_found_before_anyone_is_turned_away() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let node = fleet.node().await;
        fleet.domain.sleep(ms(200)).await;
        let worker = fleet.fresh_worker("late", 1_024).await;
        let placed = node.resolve("blue").await.expect("it is placed");
        assert_eq!(placed.worker.id, worker.id);
        // And however many strangers ask, the sessions are read ten times a second at most.
        node.store.forget_counts();
        for number in 0..100 {
            let stray = PlacementKey::single(format!("/nowhere-{number}"), "blue");
            let resolved = node.placement.resolve(&stray).await;
            assert_eq!(resolved.err(), Some(NotPlaced::UnknownNamespace));
            fleet.domain.sleep(ms(5)).await;
        }
        assert!(node.store.count("sessions_since") <= 6);
    });
}

// P4.4
#[test]
fn nothing_new_is_placed_in_a_quarantine_and_what_was_reclaimed_serves() {
    simulate(|sim| async move {
        let fleet = Fleet::quarantined(sim.domain(), 10 * SECOND);
        let worker = fleet.worker("survivor").await;
        let node = fleet.node().await;
        let resolved = node.resolve("blue").await;
        let Err(NotPlaced::Quarantined(left)) = resolved else {
            panic!("{resolved:?}");
        };
        assert!(left > 9 * SECOND && left <= 10 * SECOND, "{left:?}");
        assert_eq!(node.resolved(Resolution::Quarantined), 1);
        let keys = [key("red")];
        let reclaimed = fleet.store().reclaim(&worker.id, &[], &keys).await;
        assert!(matches!(
            reclaimed.expect("answers")[..],
            [Reclaimed::Claimed { .. }]
        ));
        let placed = node.resolve("red").await.expect("it is held");
        assert_eq!(placed.worker.id, worker.id);
        fleet.domain.sleep(10 * SECOND).await;
        assert!(node.resolve("blue").await.is_ok());
    });
}

// P3.5, P4.6
#[test]
fn a_fence_refuses_while_it_stands_and_leaves_the_id_with_a_holder_that_lives() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let holder = fleet.worker("holder").await;
        let node = fleet.node().await;
        let before = node.resolve("blue").await.expect("it is placed");
        let other = fleet.worker("other").await;
        let fence = Fence {
            starts_in: 4 * SECOND,
            ends_in: 8 * SECOND,
        };
        let fenced = fleet.store().fence(&key("blue"), Some(fence)).await;
        assert!(fenced.expect("answers").is_some());
        fleet.domain.sleep(SECOND).await;
        // Ahead: it is still served, and this node remembers it no longer than that.
        let placed = node.resolve("blue").await.expect("the fence is ahead");
        assert_eq!(placed.epoch, before.epoch);
        fleet.domain.sleep(3 * SECOND - ms(1)).await;
        assert!(node.known("blue").is_some());
        fleet.domain.sleep(ms(1)).await;
        assert!(node.known("blue").is_none());
        let Err(NotPlaced::Fenced(left)) = node.resolve("blue").await else {
            panic!("it stands");
        };
        assert_eq!(left, 4 * SECOND);
        assert_eq!(node.resolved(Resolution::Fenced), 1);
        fleet.beat(&holder).await;
        fleet.beat(&other).await;
        fleet.domain.sleep(4 * SECOND).await;
        node.read().await;
        let placed = node.resolve("blue").await.expect("it has passed");
        // It may have begun the id after the order came (P4.6).
        assert_eq!(
            (&placed.worker.id, placed.epoch),
            (&holder.id, before.epoch)
        );
        assert_eq!(node.resolved(Resolution::Replaced), 0);
        assert!(node.known("blue").is_some());
        // Once it has let go, or died, another gets it.
        fleet.end(&holder, EndMode::Now).await;
        node.read().await;
        let placed = node.resolve("blue").await.expect("there is another");
        assert_eq!(placed.worker.id, other.id);
        assert!(placed.epoch > before.epoch);
    });
}

#[test]
fn a_candidate_that_has_gone_is_passed_over() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let gone = fleet.worker("gone").await;
        let here = fleet.worker("here").await;
        let node = fleet.node().await;
        fleet.end(&gone, EndMode::Now).await;
        for number in 0..20 {
            let placed = node.resolve(&format!("id-{number}")).await;
            assert_eq!(placed.expect("it is placed").worker.id, here.id);
        }
        // Found out once, not by every id.
        assert!(node.store.count("claim") <= 21);
    });
}

// 'Decided where the specs leave it open': a release within a second of the placement.
#[test]
fn an_id_that_was_released_a_moment_after_its_placement_goes_back() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        for name in ["a", "b", "c", "d"] {
            fleet.worker(name).await;
        }
        let node = fleet.node().await;
        for number in 0..12 {
            let id = format!("id-{number}");
            let first = node.resolve(&id).await.expect("it is placed");
            fleet.release(&first).await;
            fleet.domain.sleep(ms(1)).await;
            let again = node.resolve(&id).await.expect("it is placed");
            assert_eq!(again.worker.id, first.worker.id);
            assert!(again.epoch > first.epoch);
        }
    });
}

#[test]
fn an_id_does_not_go_back_to_a_worker_that_refused_it() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        for name in ["a", "b"] {
            fleet.worker(name).await;
        }
        let node = fleet.node().await;
        let first = node.resolve("blue").await.expect("it is placed");
        let again = node
            .placement
            .after_refusal(&first, WorkerRefusal::NotResident)
            .await;
        let again = again.expect("it is placed").expect("on the other");
        assert_ne!(again.worker.id, first.worker.id);
        assert!(again.epoch > first.epoch);
    });
}

// P4.3
#[test]
fn an_epoch_is_above_what_the_durable_store_has_seen() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        let seen = 5_000_000_000_000;
        let placed = node.placement.resolve_above(&key("blue"), seen).await;
        assert!(placed.expect("it is placed").epoch > seen);
    });
}

#[test]
fn whoever_gives_up_waiting_leaves_the_others_their_answer() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("a").await;
        let node = fleet.node().await;
        let gate = node.store.hold("claim", Hold::Before);
        let first = node.resolving("blue");
        gate.reached().await;
        let second = node.resolving("blue");
        sim.advance(ms(1)).await;
        // The one that began it goes away.
        first.abort();
        sim.advance(ms(1)).await;
        node.store.release_holds();
        let placed = second.await.expect("it runs").expect("it is placed");
        assert_eq!(node.store.count("claim"), 1);
        assert_eq!(placed.key, key("blue"));
        // And when all go away, the next begins anew.
        let gate = node.store.hold("claim", Hold::After);
        let abandoned = node.resolving("red");
        gate.reached().await;
        abandoned.abort();
        sim.advance(ms(1)).await;
        node.store.release_holds();
        assert!(node.resolve("red").await.is_ok());
        assert!(format!("{:?}", node.placement).contains("under_way: 0"));
    });
}
