//! How a node learns of the sessions.

use std::sync::Arc;

use pinboard::store::EndMode;
use pinboard::workers::{NotRefreshed, WorkerChange, Workers};
use pinned_domain::Domain;

use crate::placement::scene::*;
use crate::placement::spy::{Hold, Spy};

#[test]
fn those_who_ask_while_one_reads_share_the_next_reading() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let node = fleet.node().await;
        node.store.forget_counts();
        let gate = node.store.hold("sessions_since", Hold::After);
        let refresh = |workers: &Workers| {
            let workers = workers.clone();
            fleet
                .domain
                .spawn(async move { workers.refresh_now().await })
        };
        let first = refresh(&node.workers);
        gate.reached().await;
        // The reading that is under way does not know of this one.
        let worker = fleet.fresh_worker("late", 1_024).await;
        let others: Vec<_> = (0..100).map(|_| refresh(&node.workers)).collect();
        sim.advance(ms(1)).await;
        gate.open_once();
        assert_eq!(first.await, Ok(Ok(())));
        assert!(node.workers.get(&worker.id).is_none());
        node.store.release_holds();
        for other in others {
            assert_eq!(other.await, Ok(Ok(())));
        }
        assert!(node.workers.get(&worker.id).is_some());
        assert_eq!(node.store.count("sessions_since"), 2);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_threads_each_reading_begins_after_it_was_asked_for() {
    let fleet = Arc::new(Fleet::new(Domain::real_seeded(3)).await);
    let node = Arc::new(fleet.node().await);
    let mut tasks = Vec::new();
    for task in 0..16 {
        let (fleet, node) = (Arc::clone(&fleet), Arc::clone(&node));
        tasks.push(fleet.domain.clone().spawn(async move {
            for round in 0..25 {
                let session = fleet.fresh_worker(&format!("{task}-{round}"), 1).await;
                node.read().await;
                assert!(node.workers.get(&session.id).is_some());
                fleet.end(&session, EndMode::Now).await;
                node.read().await;
                assert!(node.workers.get(&session.id).is_none());
                assert!(node.workers.has_ended(&session.id));
            }
        }));
    }
    for task in tasks {
        task.await.expect("it runs");
    }
    assert!(node.workers.all().is_empty());
}

#[test]
fn a_reading_goes_on_when_whoever_asked_for_it_goes_away() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let node = fleet.node().await;
        let worker = fleet.fresh_worker("late", 1_024).await;
        let gate = node.store.hold("sessions_since", Hold::Before);
        let workers = node.workers.clone();
        let asking = fleet
            .domain
            .spawn(async move { workers.refresh_now().await });
        gate.reached().await;
        asking.abort();
        sim.advance(ms(1)).await;
        node.store.release_holds();
        sim.advance(ms(1)).await;
        assert!(node.workers.get(&worker.id).is_some());
    });
}

#[test]
fn a_reading_that_fails_is_told_and_leaves_what_was_known() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let node = fleet.node().await;
        assert!(node.workers.store_answers());
        node.store.set_away(true);
        assert_eq!(node.workers.refresh_now().await, Err(NotRefreshed));
        assert!(!node.workers.store_answers());
        assert!(node.workers.get(&worker.id).is_some());
        node.store.set_away(false);
        node.read().await;
        assert!(node.workers.store_answers());
    });
}

// A node never believes in a lease for longer than the store does.
#[test]
fn a_lease_ends_counted_from_before_it_was_read() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.fresh_worker("a", 1_024).await;
        let node = Node::new(Spy::new(fleet.handle()), &fleet.domain, settings());
        let gate = node.store.hold("sessions_since", Hold::After);
        let workers = node.workers.clone();
        let reading = fleet
            .domain
            .spawn(async move { workers.refresh_now().await });
        gate.reached().await;
        // The answer takes three seconds.
        fleet.domain.sleep(3 * SECOND).await;
        node.store.release_holds();
        assert_eq!(reading.await, Ok(Ok(())));
        let known = node.workers.get(&worker.id).expect("it lives");
        let left = known.lease_left(fleet.domain.monotonic());
        assert_eq!(left, TTL - 3 * SECOND);
        fleet.domain.sleep(left - ms(1)).await;
        assert!(known.is_live());
        fleet.domain.sleep(ms(1)).await;
        assert!(!known.is_live());
        assert!(node.workers.get(&worker.id).is_none());
    });
}

#[test]
fn a_worker_is_the_same_while_it_beats_at_the_same_addresses() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let mut worker = fleet.worker("a").await;
        let node = fleet.node().await;
        let before = node.workers.get(&worker.id).expect("it lives");
        fleet.domain.sleep(5 * SECOND).await;
        worker.record.update.headroom = 77;
        fleet.beat(&worker).await;
        node.read().await;
        let after = node.workers.get(&worker.id).expect("it lives");
        assert!(Arc::ptr_eq(&before, &after));
        assert_eq!(after.headroom(), 77);
        assert_eq!(after.view.read().record.update.headroom, 77);
        assert_eq!(after.lease_left(fleet.domain.monotonic()), TTL);
        // Elsewhere it is another, with connections of its own.
        worker.record.update.moved_to = Some(vec![([127, 0, 0, 2], 9_000).into()]);
        fleet.beat(&worker).await;
        node.read().await;
        let moved = node.workers.get(&worker.id).expect("it lives");
        assert!(!Arc::ptr_eq(&after, &moved));
        assert!(!after.is_live() && moved.is_live());
        assert!(!node.workers.has_ended(&worker.id));
    });
}

#[test]
fn sessions_are_read_every_sweep_interval() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let node = fleet.node().await;
        let reading = node.keep_reading();
        let worker = fleet.worker("late").await;
        sim.advance(SECOND).await;
        assert!(node.workers.get(&worker.id).is_some());
        fleet.end(&worker, EndMode::Now).await;
        sim.advance(SECOND).await;
        assert!(node.workers.get(&worker.id).is_none());
        node.store.forget_counts();
        sim.advance(10 * SECOND).await;
        assert_eq!(node.store.count("sessions_since"), 10);
        reading.abort();
    });
}

#[test]
fn short_leases_are_read_more_often() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let mut settings = settings();
        settings.lease_ttl = SECOND;
        let node = Node::new(Spy::new(fleet.handle()), &fleet.domain, settings);
        let reading = node.keep_reading();
        sim.advance(SECOND).await;
        assert!(node.store.count("sessions_since") >= 4);
        reading.abort();
    });
}

#[test]
fn who_comes_and_who_goes_is_told() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let node = fleet.node().await;
        let mut changes = node.workers.changes();
        let ended = fleet.worker("ended").await;
        let lost = fleet.worker("lost").await;
        node.read().await;
        for _ in 0..2 {
            assert!(matches!(changes.try_recv(), Ok(WorkerChange::Joined(_))));
        }
        fleet.beat(&lost).await;
        node.read().await;
        assert!(changes.try_recv().is_err(), "a heartbeat is no change");
        fleet.end(&ended, EndMode::Now).await;
        node.read().await;
        let Ok(WorkerChange::Left {
            worker,
            lost: false,
        }) = changes.try_recv()
        else {
            panic!("it was ended");
        };
        assert_eq!(worker.id, ended.id);
        fleet.domain.sleep(TTL).await;
        node.read().await;
        let Ok(WorkerChange::Left { worker, lost: true }) = changes.try_recv() else {
            panic!("its lease ran out");
        };
        assert_eq!(worker.id, lost.id);
    });
}

// P4.4: what a wiped store does not list does not live.
#[test]
fn after_a_wipe_nobody_lives() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let node = fleet.node().await;
        let placed = node.resolve("blue").await.expect("it is placed");
        fleet.wipe();
        node.read().await;
        assert!(node.workers.get(&worker.id).is_none());
        assert!(!placed.worker.is_live());
        assert!(node.known("blue").is_none());
    });
}
