//! Many nodes at once (P12.5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pinned_domain::TaskHandle;
use tokio::task::yield_now;

use super::scene::{Scene, Worker, claim, held_by_dead};
use super::verdict::{Verdict, holds, same};
use crate::store::{
    Claimed, EndMode, Event, EventKind, Expected, PlacementKey, RegistryStore, SessionId,
};

const NODES: usize = 50;

pub(super) async fn checks(scene: &Scene) {
    let nodes = Nodes::open(scene).await;
    each_id_has_one_holder(scene, &nodes).await;
    each_dead_holder_has_one_successor(scene, &nodes).await;
    one_node_leads(scene, &nodes).await;
    each_event_has_a_number_of_its_own(scene, &nodes).await;
    one_session_of_a_client_is_the_latest(scene, &nodes).await;
}

/// Handles of fifty nodes, and a worker behind each.
struct Nodes {
    ns: Arc<str>,
    nodes: Vec<(Arc<dyn RegistryStore>, Worker)>,
}

impl Nodes {
    async fn open(scene: &Scene) -> Self {
        let ns = scene.ns();
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            let worker = scene.worker(std::slice::from_ref(&ns)).await;
            nodes.push((scene.node().await, worker));
        }
        Self { ns, nodes }
    }

    fn key(&self, group: &str, n: usize) -> PlacementKey {
        PlacementKey::single(self.ns.clone(), format!("{group}-{n}"))
    }

    /// Does the same on every node at once.
    async fn all<T, F>(
        &self,
        scene: &Scene,
        run: impl Fn(usize, Arc<dyn RegistryStore>, Worker) -> F,
    ) -> Vec<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let tasks: Vec<TaskHandle<T>> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(n, (node, worker))| scene.domain.spawn(run(n, Arc::clone(node), worker.clone())))
            .collect();
        let mut outcomes = Vec::new();
        for task in tasks {
            match task.await {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => panic!("P12.5 (many nodes at once): {error}"),
            }
        }
        outcomes
    }
}

async fn each_id_has_one_holder(scene: &Scene, nodes: &Nodes) {
    const IDS: usize = 1_000;
    let rule = "P12.5 (50 nodes place the same 1,000 ids at once)";
    let keys: Arc<[_]> = (0..IDS).map(|n| nodes.key("fresh", n)).collect();
    let outcomes = nodes
        .all(scene, |_, node, worker| {
            let keys = Arc::clone(&keys);
            async move {
                let mut outcomes = Vec::new();
                for key in &*keys {
                    yield_now().await;
                    let asked = claim(key, &worker, Expected::Vacant);
                    let outcome = match node.claim(asked).await.holds(rule) {
                        Claimed::Placed { epoch, .. } => (worker.session.clone(), epoch, true),
                        other => {
                            let row = other.held(rule);
                            (row.session, row.epoch, false)
                        }
                    };
                    outcomes.push(outcome);
                }
                outcomes
            }
        })
        .await;
    for (n, key) in keys.iter().enumerate() {
        let told = outcomes.iter().map(|of_node| &of_node[n]);
        let placements = told.clone().filter(|(_, _, placed)| *placed).count();
        same(rule, &format!("placements of {key}"), &placements, &1);
        let holders: BTreeSet<(&SessionId, u64)> =
            told.map(|(session, epoch, _)| (session, *epoch)).collect();
        same(
            rule,
            &format!("holders of {key}: {holders:?}"),
            &holders.len(),
            &1,
        );
        let row = scene
            .row(key, rule)
            .await
            .map(|row| (row.session, row.epoch));
        let first = &outcomes[0][n];
        same(rule, "the row", &row, &Some((first.0.clone(), first.1)));
    }
}

async fn each_dead_holder_has_one_successor(scene: &Scene, nodes: &Nodes) {
    const IDS: usize = 200;
    let rule = "P4.2 (of many who take over at once, one does)";
    let dead = scene.worker(std::slice::from_ref(&nodes.ns)).await;
    let keys: Arc<[_]> = (0..IDS).map(|n| nodes.key("dead", n)).collect();
    let mut epochs = Vec::new();
    for key in &*keys {
        epochs.push(scene.place(key, &dead, rule).await);
    }
    scene.end(&dead, EndMode::Now, rule).await;
    let epochs: Arc<[u64]> = epochs.into();
    let placed = nodes
        .all(scene, |_, node, worker| {
            let (keys, epochs, dead) = (Arc::clone(&keys), Arc::clone(&epochs), dead.clone());
            async move {
                let mut placed = Vec::new();
                for (n, key) in keys.iter().enumerate() {
                    yield_now().await;
                    let asked = claim(key, &worker, held_by_dead(&dead, epochs[n]));
                    match node.claim(asked).await.holds(rule) {
                        Claimed::Placed { epoch, replaced } => {
                            holds(rule, "the dead one lost it", replaced && epoch > epochs[n]);
                            placed.push((n, worker.session.clone(), epoch));
                        }
                        other => drop(other.held(rule)),
                    }
                }
                placed
            }
        })
        .await;
    let mut successors = BTreeMap::new();
    for (n, session, epoch) in placed.into_iter().flatten() {
        let earlier = successors.insert(n, (session, epoch));
        same(
            rule,
            &format!("another successor of id {n}"),
            &earlier,
            &None,
        );
    }
    same(
        rule,
        "how many ids have a successor",
        &successors.len(),
        &IDS,
    );
    for (n, successor) in successors {
        let row = scene.row(&keys[n], rule).await;
        let row = row.map(|row| (row.session, row.epoch));
        same(rule, "the row", &row, &Some(successor));
    }
}

async fn one_node_leads(scene: &Scene, nodes: &Nodes) {
    let rule = "P8.1 (of many who want to lead, one does)";
    let name: Arc<str> = format!("lease-{}", scene.number()).into();
    let led = nodes
        .all(scene, |n, node, _| {
            let name = Arc::clone(&name);
            async move {
                let (id, ttl) = (format!("node-{n}"), Duration::from_secs(1_000));
                let mut led = 0;
                for _ in 0..10 {
                    yield_now().await;
                    led += usize::from(node.lead(&name, &id, ttl).await.holds(rule));
                }
                led
            }
        })
        .await;
    let leaders: Vec<_> = led.iter().filter(|led| **led > 0).collect();
    same(
        rule,
        "the leaders, and how often each led",
        &leaders,
        &vec![&10],
    );
}

async fn each_event_has_a_number_of_its_own(scene: &Scene, nodes: &Nodes) {
    const EACH: usize = 16;
    let rule = "P3.3 (events of many nodes)";
    let start = scene.store.events_after(0, 10_000).await.holds(rule).next;
    nodes
        .all(scene, |n, node, _| async move {
            for m in 0..EACH / 2 {
                yield_now().await;
                let two = [2 * m, 2 * m + 1].map(|m| event(format!("{n:02}/{m:02}")));
                node.append_events(two.to_vec()).await.holds(rule);
            }
        })
        .await;
    let page = scene.store.events_after(start, 10_000).await.holds(rule);
    let numbers: Vec<_> = page.events.iter().map(|event| event.seq).collect();
    holds(rule, "the numbers rise", numbers.is_sorted_by(|a, b| a < b));
    let details = page.events.iter().filter_map(|event| event.detail.clone());
    let details: Vec<_> = details.collect();
    same(rule, "how many there are", &details.len(), &(NODES * EACH));
    for n in 0..NODES {
        let own = details
            .iter()
            .filter(|d| d.starts_with(&format!("{n:02}/")));
        let own: Vec<_> = own.collect();
        same(rule, "how many a node has", &own.len(), &EACH);
        holds(rule, "a node's events are in order", own.is_sorted());
    }
    let pairs = details.chunks(2).all(|pair| pair[0][..3] == pair[1][..3]);
    holds(rule, "what was appended together is together", pairs);
}

fn event(detail: String) -> Event {
    Event {
        seq: 0,
        at: 1_800_000_000_000,
        kind: EventKind::Placed,
        client_id: None,
        session_id: None,
        env: None,
        hostname: None,
        namespaces: Vec::new(),
        id: None,
        epoch: None,
        detail: Some(detail),
    }
}

async fn one_session_of_a_client_is_the_latest(scene: &Scene, nodes: &Nodes) {
    let rule = "P2.4 (of many sessions of one client, the latest lives)";
    let record = scene.record(std::slice::from_ref(&nodes.ns));
    let workers = nodes
        .all(scene, |_, node, mut worker| {
            worker.record = record.clone();
            worker.session = SessionId::new(scene.domain.token_hex(16));
            async move {
                let registered = node.register(worker.begin()).await.holds(rule);
                (worker, registered.earlier)
            }
        })
        .await;
    // Each was the earlier one of at most one other, and one of none.
    let earlier: Vec<_> = workers.iter().filter_map(|(_, e)| e.clone()).collect();
    let distinct: BTreeSet<_> = earlier.iter().cloned().collect();
    same(
        rule,
        "the earlier sessions",
        &distinct.len(),
        &earlier.len(),
    );
    same(rule, "how many there are", &earlier.len(), &(NODES - 1));
    for (worker, _) in &workers {
        let lives = scene.lives(worker, rule).await;
        let latest = !distinct.contains(&worker.session);
        same(rule, "whether a session takes heartbeats", &lives, &latest);
    }
}
