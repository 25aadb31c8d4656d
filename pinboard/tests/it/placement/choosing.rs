//! Which worker is chosen (P4.1).

use std::collections::BTreeMap;

use pinboard::placement::{NotPlaced, WorkerRefusal};
use pinboard::store::{Drain, EndMode};

use super::scene::*;

/// How many of `count` new ids each worker is given.
async fn spread(node: &Node, prefix: &str, count: usize) -> BTreeMap<String, usize> {
    let mut spread = BTreeMap::new();
    for number in 0..count {
        let placed = node.resolve(&format!("{prefix}-{number}")).await;
        let placed = placed.expect("it is placed");
        *spread.entry(holder(&placed).to_owned()).or_default() += 1;
    }
    spread
}

// P4.1
#[test]
fn ids_are_spread_in_proportion_to_headroom() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker_with("large", 9_000).await;
        fleet.worker_with("small", 3_000).await;
        let node = fleet.node().await;
        let spread = spread(&node, "id", 1_200).await;
        // Three to one, and no herd to the larger.
        let small = spread["session-small"];
        assert!((240..=360).contains(&small), "{spread:?}");
    });
}

// P4.1: one heartbeat's figure draws no herd.
#[test]
fn ids_placed_since_the_last_heartbeat_count_against_the_headroom_that_it_told() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker_with("a", 100).await;
        fleet.worker_with("b", 50).await;
        let node = fleet.node().await;
        let first = spread(&node, "first", 100).await;
        // The share of what each has promised away is the same.
        assert!((60..=74).contains(&first["session-a"]), "{first:?}");
        let promised = |session: &str| {
            let all = node.workers.all();
            let worker = all.iter().find(|worker| worker.id.as_str() == session);
            worker.expect("it lives").promised()
        };
        assert_eq!(promised("session-a"), first["session-a"] as u64);
        // More than both have: placed all the same, as evenly.
        let second = spread(&node, "second", 100).await;
        assert_eq!(second.values().sum::<usize>(), 100);
    });
}

#[test]
fn a_heartbeat_settles_what_was_promised_before() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let node = fleet.node().await;
        spread(&node, "id", 5).await;
        assert_eq!(node.workers.all()[0].promised(), 5);
        // A reading without a heartbeat changes nothing.
        node.read().await;
        assert_eq!(node.workers.all()[0].promised(), 5);
        fleet.domain.sleep(SECOND).await;
        fleet.beat(&worker).await;
        node.read().await;
        assert_eq!(node.workers.all()[0].promised(), 0);
    });
}

// P4.1
#[test]
fn with_no_headroom_anywhere_ids_are_placed_evenly() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        for name in ["a", "b", "c"] {
            fleet.worker_with(name, 0).await;
        }
        let node = fleet.node().await;
        let spread = spread(&node, "id", 300).await;
        assert!(
            spread.values().all(|count| (70..=130).contains(count)),
            "{spread:?}"
        );
    });
}

// P4.1
#[test]
fn a_worker_that_takes_no_ids_is_no_candidate() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("open").await;
        let mut draining = fleet.worker("draining").await;
        draining.record.update.draining = true;
        fleet.beat(&draining).await;
        let mut unreachable = fleet.worker("unreachable").await;
        unreachable.record.update.reachable = false;
        fleet.beat(&unreachable).await;
        let cordoned = fleet.worker("cordoned").await;
        let client = cordoned.record.client_id.as_str();
        let ordered = fleet.store().order_drain(client, Some(Drain::Cordon)).await;
        assert!(ordered.expect("answers"));
        let drained = fleet.worker("drained").await;
        let by = Drain::By { left: 60 * SECOND };
        let client = drained.record.client_id.as_str();
        let ordered = fleet.store().order_drain(client, Some(by)).await;
        assert!(ordered.expect("answers"));
        let ending = fleet.worker("ending").await;
        fleet.end(&ending, EndMode::AtExpiry).await;
        let node = fleet.node().await;
        let spread = spread(&node, "id", 60).await;
        assert_eq!(spread.keys().collect::<Vec<_>>(), ["session-open"]);
        let counts = node.workers.counts();
        assert_eq!(
            (
                counts.open,
                counts.draining,
                counts.unreachable,
                counts.ending
            ),
            (1, 3, 1, 1)
        );
    });
}

// P4.1: the grant has longer to run than the forward needs.
#[test]
fn a_worker_whose_lease_is_about_to_end_is_given_no_new_id() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let waning = fleet.fresh_worker("waning", 1_024).await;
        fleet.domain.sleep(TTL - 3 * SECOND).await;
        let node = fleet.node().await;
        let placed = node.resolve("early").await.expect("it is placed");
        assert_eq!(holder(&placed), "session-waning");
        fleet.domain.sleep(SECOND + ms(10)).await;
        assert!(
            node.workers.get(&waning.id).is_some(),
            "its lease runs for two seconds yet"
        );
        assert_eq!(node.resolve("late").await.err(), Some(NotPlaced::NoWorkers));
        // What it holds stays with it.
        assert!(node.known("early").is_some());
    });
}

#[test]
fn a_worker_that_has_just_refused_comes_after_all_others() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        for name in ["a", "b", "c"] {
            fleet.worker(name).await;
        }
        let node = fleet.node().await;
        let placed = node.resolve("first").await.expect("it is placed");
        let refusing = holder(&placed).to_owned();
        let again = node
            .placement
            .after_refusal(&placed, WorkerRefusal::NotResident)
            .await;
        assert!(again.expect("there are others").is_some());
        let spread = spread(&node, "id", 60).await;
        assert_eq!(spread.get(&refusing), None, "{spread:?}");
        // For a second.
        fleet.domain.sleep(SECOND).await;
        let spread = self::spread(&node, "later", 60).await;
        assert!(spread.contains_key(&refusing), "{spread:?}");
    });
}

// A worker that has not read its session yet would refuse what is attested for it.
#[test]
fn a_worker_that_has_just_registered_is_given_fifty_milliseconds() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.fresh_worker("fresh", 1_024).await;
        fleet.domain.sleep(ms(20)).await;
        let node = fleet.node().await;
        let before = fleet.domain.monotonic();
        node.resolve("one").await.expect("it is placed");
        // One of them the listener took.
        assert_eq!(fleet.domain.monotonic() - before, ms(29));
        node.resolve("two").await.expect("it is placed");
        assert_eq!(fleet.domain.monotonic() - before, ms(29));
    });
}

#[test]
fn while_one_settles_another_takes_the_new_ids() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("old").await;
        fleet.fresh_worker("fresh", 1_024).await;
        let node = fleet.node().await;
        let before = fleet.domain.monotonic();
        let spread = spread(&node, "id", 40).await;
        assert_eq!(spread.keys().collect::<Vec<_>>(), ["session-old"]);
        assert_eq!(fleet.domain.monotonic(), before);
    });
}
