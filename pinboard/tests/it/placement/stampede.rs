//! Many at once: in virtual time for what is counted, on real threads for what races.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pinboard::metrics::Resolution;
use pinned_domain::Domain;

use super::scene::*;
use super::spy::Hold;

// P4.2
#[test]
fn a_thousand_requests_for_one_unplaced_id_make_one_claim() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        for name in ["a", "b", "c"] {
            fleet.worker(name).await;
        }
        let node = fleet.node().await;
        let gate = node.store.hold("claim", Hold::Before);
        let resolving: Vec<_> = (0..1_000).map(|_| node.resolving("blue")).collect();
        gate.reached().await;
        sim.advance(ms(1)).await;
        node.store.release_holds();
        let mut holders = BTreeSet::new();
        for resolving in resolving {
            let placed = resolving.await.expect("it runs").expect("it is placed");
            holders.insert((placed.worker.id.clone(), placed.epoch));
        }
        assert_eq!(holders.len(), 1);
        assert_eq!(node.store.count("claim"), 1);
        assert_eq!(node.resolved(Resolution::Placed), 1);
        assert_eq!(node.resolved(Resolution::Cached), 999);
    });
}

// P4.2
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_requests_on_threads_make_one_claim() {
    let fleet = Fleet::new(Domain::real_seeded(7)).await;
    for name in ["a", "b", "c"] {
        fleet.worker(name).await;
    }
    let node = fleet.node().await;
    for round in 0..20 {
        node.store.forget_counts();
        let id = format!("id-{round}");
        let resolving: Vec<_> = (0..1_000).map(|_| node.resolving(&id)).collect();
        let mut holders = BTreeSet::new();
        for resolving in resolving {
            let placed = resolving.await.expect("it runs").expect("it is placed");
            holders.insert((placed.worker.id.clone(), placed.epoch));
        }
        assert_eq!(holders.len(), 1);
        assert_eq!(node.store.count("claim"), 1);
    }
}

// P4.2, P12.1: failover without a stampede.
#[test]
fn the_ids_of_a_dead_worker_are_spread_over_the_others() {
    simulate(|sim| async move {
        let fleet = Arc::new(Fleet::new(sim.domain()).await);
        let dead = fleet.worker("dead").await;
        let dying = fleet.keep_alive(&dead);
        let node = fleet.node().await;
        let reading = node.keep_reading();
        let ids: Vec<_> = (0..1_000).map(|number| format!("id-{number}")).collect();
        for id in &ids {
            node.resolve(id).await.expect("it is placed");
        }
        let mut others = Vec::new();
        for name in ["a", "b", "c", "d"] {
            let worker = fleet.worker_with(name, 10_000).await;
            others.push(fleet.keep_alive(&worker));
        }
        // Killed: it beats no more. Its ids are not moved while its lease runs.
        dying.abort();
        fleet.domain.sleep(TTL + ms(1_500)).await;
        node.store.forget_counts();
        let before = fleet.domain.monotonic();
        let resolving: Vec<_> = ids
            .iter()
            .flat_map(|id| [node.resolving(id), node.resolving(id)])
            .collect();
        let mut spread = BTreeMap::<String, usize>::new();
        for resolving in resolving {
            let placed = resolving.await.expect("it runs").expect("it is placed");
            assert_ne!(placed.worker.id, dead.id);
            *spread.entry(holder(&placed).to_owned()).or_default() += 1;
        }
        assert_eq!(spread.len(), 4);
        assert!(
            spread.values().all(|count| (400..=600).contains(count)),
            "{spread:?}"
        );
        assert_eq!(node.store.count("claim"), 2_000, "two for each id");
        assert!(node.store.count("sessions_since") <= 2);
        assert_eq!(fleet.domain.monotonic(), before);
        reading.abort();
        others.iter().for_each(|beating| beating.abort());
    });
}

// P12.5
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nodes_that_place_the_same_ids_at_once_agree_on_every_holder() {
    let fleet = Fleet::new(Domain::real_seeded(11)).await;
    for name in ["a", "b", "c", "d", "e"] {
        fleet.worker(name).await;
    }
    let mut nodes = Vec::new();
    for _ in 0..10 {
        nodes.push(fleet.node().await);
    }
    let ids: Vec<_> = (0..200).map(|number| format!("id-{number}")).collect();
    let resolving: Vec<_> = nodes
        .iter()
        .flat_map(|node| ids.iter().map(|id| (id.clone(), node.resolving(id))))
        .collect();
    let mut holders = BTreeMap::<String, BTreeSet<(String, u64)>>::new();
    for (id, resolving) in resolving {
        let placed = resolving.await.expect("it runs").expect("it is placed");
        let holding = (holder(&placed).to_owned(), placed.epoch);
        holders.entry(id).or_default().insert(holding);
    }
    assert!(holders.values().all(|of_one| of_one.len() == 1));
    let placed: u64 = nodes
        .iter()
        .map(|node| node.resolved(Resolution::Placed))
        .sum();
    assert_eq!(placed, 200);
}

// P5.7: whatever order readings and invalidations come in, no node goes on believing what is not so.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_every_node_remembers_in_the_end_is_what_the_store_has() {
    let fleet = Arc::new(Fleet::new(Domain::real_seeded(13)).await);
    for name in ["a", "b", "c"] {
        fleet.worker(name).await;
    }
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(Arc::new(fleet.node().await));
    }
    let ids: Vec<_> = (0..8).map(|number| format!("id-{number}")).collect();
    let mut tasks = Vec::new();
    for node in &nodes {
        for id in &ids {
            let (fleet, node, id) = (Arc::clone(&fleet), Arc::clone(node), id.clone());
            tasks.push(fleet.domain.clone().spawn(async move {
                for _ in 0..200 {
                    let placed = node.resolve(&id).await.expect("it is placed");
                    // Whoever still holds it lets go; somebody else may have been first.
                    let release = pinboard::store::Release {
                        session: placed.worker.id.clone(),
                        key: placed.key.clone(),
                        epoch: Some(placed.epoch),
                    };
                    fleet.store().release(&[release]).await.expect("answers");
                    node.placement.forget(&placed);
                    node.resolve(&id).await.expect("it is placed");
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("it runs");
    }
    // What is under way arrives.
    for id in &ids {
        let truth = fleet.row(&key(id)).await.expect("it is held");
        for node in &nodes {
            let mut looks = 0;
            loop {
                let known = node.known(id);
                let wrong = known
                    .as_ref()
                    .is_some_and(|placed| placed.epoch != truth.epoch);
                if !wrong {
                    break;
                }
                looks += 1;
                assert!(looks < 1_000, "it is believed for good: {known:?}");
                fleet.domain.sleep(ms(5)).await;
            }
        }
    }
}
