//! Sweeping, on one node at a time.

use std::sync::Arc;

use pinboard::store::EventKind;
use pinboard::workers::{SWEEPER, Sweeper};
use pinned_domain::TaskHandle;

use crate::placement::scene::*;

fn sweeper(node: &Node, name: &str) -> (Arc<Sweeper>, TaskHandle<()>) {
    let sweeper = Arc::new(Sweeper::new(
        Arc::clone(&node.store) as _,
        node.workers.clone(),
        node.events.clone(),
        node.domain.clone(),
        &settings(),
        name,
    ));
    let running = Arc::clone(&sweeper);
    let task = node.domain.spawn(async move {
        let _ = running.run().await;
    });
    (sweeper, task)
}

#[test]
fn one_node_sweeps_and_another_takes_over() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let (one, other) = (fleet.node().await, fleet.node().await);
        let (first, running) = sweeper(&one, "one");
        sim.advance(ms(1)).await;
        let (second, also_running) = sweeper(&other, "other");
        sim.advance(10 * SECOND).await;
        assert!(first.is_leading() && !second.is_leading());
        assert!(one.store.count("sweep") >= 10);
        assert_eq!(other.store.count("sweep"), 0);
        // It dies; its lease runs out.
        running.abort();
        sim.advance(6 * SECOND).await;
        assert!(second.is_leading());
        assert!(other.store.count("sweep") >= 1);
        let leader = fleet.store().leader(SWEEPER).await.expect("answers");
        assert_eq!(leader.expect("there is one").0, "other");
        // It stands down, and the next may lead at once.
        also_running.abort();
        second.stand_down().await.expect("the store answers");
        assert!(!second.is_leading());
        assert_eq!(fleet.store().leader(SWEEPER).await.expect("answers"), None);
    });
}

#[test]
fn the_rows_of_a_dead_worker_go() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        fleet.worker("dead").await;
        let node = fleet.node().await;
        for number in 0..50 {
            node.resolve(&format!("id-{number}"))
                .await
                .expect("it is placed");
        }
        let (_, running) = sweeper(&node, "one");
        sim.advance(TTL + 2 * SECOND).await;
        let counts = fleet.store().row_counts().await.expect("answers");
        assert_eq!(counts.iter().map(|(_, _, count)| count).sum::<u64>(), 0);
        running.abort();
    });
}

// P3.3: every node sees a session expire, and one tells.
#[test]
fn a_lost_session_is_told_of_once() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let (one, other) = (fleet.node().await, fleet.node().await);
        let tasks = [
            one.keep_reading(),
            other.keep_reading(),
            sweeper(&one, "one").1,
            sweeper(&other, "other").1,
        ];
        fleet.worker("lost").await;
        sim.advance(TTL + 3 * SECOND).await;
        let mut told = one.events.take();
        told.extend(other.events.take());
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].kind, EventKind::SessionLost);
        assert_eq!(told[0].session_id.as_deref(), Some("session-lost"));
        assert_eq!(told[0].client_id.as_deref(), Some("client-lost"));
        tasks.iter().for_each(TaskHandle::abort);
    });
}

// P4.4, P3.3
#[test]
fn a_quarantine_is_told_of_once() {
    simulate(|sim| async move {
        let fleet = Fleet::quarantined(sim.domain(), 10 * SECOND);
        let node = fleet.node().await;
        let (_, running) = sweeper(&node, "one");
        sim.advance(15 * SECOND).await;
        assert_eq!(node.told(), [EventKind::Quarantine]);
        running.abort();
    });
}

#[test]
fn a_sweeper_survives_a_store_that_goes_away() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let node = fleet.node().await;
        let (sweeper, running) = sweeper(&node, "one");
        sim.advance(SECOND).await;
        node.store.set_away(true);
        sim.advance(10 * SECOND).await;
        assert!(!sweeper.is_leading());
        node.store.set_away(false);
        sim.advance(2 * SECOND).await;
        assert!(sweeper.is_leading());
        running.abort();
    });
}
