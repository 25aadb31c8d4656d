//! Random faults at random moments, under load.

use std::sync::Arc;
use std::time::Duration;

use pinboard::store::{PlacementKey, RegistryStore as _, SessionId};
use pinboard::testing::CutOff;
use serde_json::json;
use tokio::sync::{RwLock, RwLockReadGuard};

use super::client::{Client, NS};
use super::fleet::{Fleet, TTL};
use super::net::{Cut, Host};

/// How many ids the clients ask for.
pub(super) const IDS: usize = 6;
/// How many faults there are in a run.
const FAULTS: usize = 14;
/// How many clients there are.
const CLIENTS: usize = 2;

/// What can go wrong.
#[derive(Clone, Copy, Debug)]
enum Fault {
    WorkerCrashes,
    WorkerLeaves,
    WorkerLosesRegistry,
    WorkerIsOutOfReach,
    WorkerFreezes,
    WorkerLosesItsClock,
    NodeCrashes,
    NodeStops,
    NodeLosesStore,
    StoreIsFlaky,
    StoreIsWiped,
    StoreGoesBack,
    Drained,
    WoundDown,
    BadWeather,
}

const ALL: [Fault; 15] = [
    Fault::WorkerCrashes,
    Fault::WorkerLeaves,
    Fault::WorkerLosesRegistry,
    Fault::WorkerIsOutOfReach,
    Fault::WorkerFreezes,
    Fault::WorkerLosesItsClock,
    Fault::NodeCrashes,
    Fault::NodeStops,
    Fault::NodeLosesStore,
    Fault::StoreIsFlaky,
    Fault::StoreIsWiped,
    Fault::StoreGoesBack,
    Fault::Drained,
    Fault::WoundDown,
    Fault::BadWeather,
];

/// A run of random faults.
pub(super) struct Program {
    fleet: Arc<Fleet>,
    client: Client,
    /// Held by whatever may cost a worker its lease. A store that loses everything takes the word of whoever comes first
    /// (P4.4), and one that was cut off past its lease does not know that its ids have gone to others: the two together are
    /// more than the registry can tell apart.
    trouble: RwLock<()>,
}

impl Program {
    pub(super) fn new(fleet: &Arc<Fleet>) -> Arc<Self> {
        Arc::new(Self {
            fleet: Arc::clone(fleet),
            client: fleet.client(),
            trouble: RwLock::new(()),
        })
    }

    /// Whoever asks: its requests have numbers of their own.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// All faults, and the load meanwhile; everything is mended at the end.
    pub(super) async fn run(self: &Arc<Self>) {
        let domain = self.fleet.domain.clone();
        let load: Vec<_> = (0..CLIENTS)
            .map(|_| domain.spawn(Arc::clone(self).load()))
            .collect();
        let mut faults = Vec::new();
        for _ in 0..FAULTS {
            domain.sleep(self.fleet.draw_time(0.0, 12.0)).await;
            let fault = ALL[self.fleet.draw(ALL.len())];
            let this = Arc::clone(self);
            faults.push(domain.spawn(async move { this.happen(fault).await }));
        }
        for fault in faults {
            if let Err(error) = fault.await {
                self.fleet
                    .watch
                    .violation(format!("a fault went wrong: {error}"));
            }
        }
        load.iter().for_each(|load| load.abort());
        self.mend().await;
    }

    /// One client.
    async fn load(self: Arc<Self>) {
        let fleet = &self.fleet;
        loop {
            let (node, id) = (fleet.draw(fleet.nodes.len()), fleet.draw(IDS));
            let status = self.client.increment(node, &id_of(id)).await;
            fleet
                .sim
                .note(format!("id-{id} through node-{node}: {status:?}"));
            self.look().await;
            fleet.domain.sleep(fleet.draw_time(0.05, 1.2)).await;
        }
    }

    /// What the registry says of each id.
    pub(super) async fn look(&self) {
        look(&self.fleet).await;
    }

    async fn happen(&self, fault: Fault) {
        let fleet = &self.fleet;
        let (worker, node) = (
            fleet.draw(fleet.workers.len()),
            fleet.draw(fleet.nodes.len()),
        );
        let lasts = match fleet.draw(3) {
            0 => fleet.draw_time(0.5, 5.0),
            1 => fleet.draw_time(5.0, 16.0),
            _ => fleet.draw_time(16.0, 35.0),
        };
        let how = [Cut::Refused, Cut::Silent][fleet.draw(2)];
        fleet.sim.note(format!(
            "{fault:?}: worker-{worker} node-{node} {how:?} for {lasts:?}"
        ));
        match fault {
            Fault::StoreIsWiped => return self.wipe().await,
            Fault::StoreGoesBack => return self.go_back().await,
            _ => {}
        }
        let trouble = self.trouble.read().await;
        match fault {
            Fault::WorkerCrashes => {
                if fleet.crash_worker(worker) {
                    fleet.domain.sleep(lasts).await;
                    fleet.hire(worker);
                }
            }
            Fault::WorkerLeaves => {
                if fleet.dismiss(worker).await {
                    fleet.domain.sleep(lasts).await;
                    fleet.hire(worker);
                }
            }
            Fault::WorkerLosesRegistry => {
                self.cut(worker_to_nodes(fleet, worker), how, lasts).await;
            }
            Fault::WorkerIsOutOfReach => {
                let way = (Host::Node(node), Host::Worker(worker));
                self.cut(vec![way], how, lasts).await;
            }
            Fault::WorkerFreezes => {
                if let Some(worker) = fleet.worker(worker) {
                    worker.knobs().freeze();
                    fleet.domain.sleep(lasts).await;
                    worker.knobs().thaw();
                }
            }
            Fault::WorkerLosesItsClock => {
                if let Some(worker) = fleet.worker(worker) {
                    worker.knobs().stop_clock();
                    fleet.domain.sleep(lasts).await;
                    worker.knobs().start_clock();
                }
            }
            Fault::NodeCrashes => {
                if fleet.crash_node(node) {
                    self.restart(node, lasts).await;
                }
            }
            Fault::NodeStops => {
                if fleet.stop_node(node).await {
                    self.restart(node, lasts).await;
                }
            }
            Fault::NodeLosesStore => {
                if let Some(store) = fleet.store_of(node) {
                    store.cut(match how {
                        Cut::Refused => CutOff::Refused,
                        Cut::Silent => CutOff::Silent(Duration::from_secs(2)),
                    });
                    fleet.domain.sleep(lasts).await;
                    store.restore();
                }
            }
            Fault::StoreIsFlaky => {
                if let Some(store) = fleet.store_of(node) {
                    store.rates(0.1, 0.1);
                    store.latency(Duration::ZERO..=Duration::from_millis(500));
                    fleet.domain.sleep(lasts).await;
                    store.rates(0.0, 0.0);
                    store.latency(Duration::ZERO..=Duration::ZERO);
                }
            }
            Fault::Drained => self.drain(worker, node, lasts).await,
            Fault::WoundDown => self.wind_down(node, lasts).await,
            Fault::BadWeather => {
                fleet.net.weather(Duration::from_millis(700), 0.03);
                fleet.domain.sleep(lasts).await;
                fleet.net.weather(Duration::from_millis(10), 0.0);
            }
            Fault::StoreIsWiped | Fault::StoreGoesBack => {}
        }
        drop(trouble);
    }

    async fn cut(&self, ways: Vec<(Host, Host)>, how: Cut, lasts: Duration) {
        let net = &self.fleet.net;
        ways.iter().for_each(|(from, to)| net.cut(*from, *to, how));
        self.fleet.domain.sleep(lasts).await;
        ways.iter().for_each(|(from, to)| net.mend(*from, *to));
    }

    async fn restart(&self, node: usize, lasts: Duration) {
        self.fleet.domain.sleep(lasts).await;
        while !self.fleet.start_node(node).await {
            self.fleet.domain.sleep(Duration::from_secs(1)).await;
        }
    }

    async fn drain(&self, worker: usize, node: usize, lasts: Duration) {
        let Some(worker) = self.fleet.worker(worker) else {
            return;
        };
        let deadline = [None, Some(15.0), Some(25.0)][self.fleet.draw(3)];
        let client_id = worker.client_id();
        let order = json!({"clientId": client_id, "deadline": deadline});
        self.client.order(node, "/registry/drain", &order).await;
        self.fleet.domain.sleep(lasts).await;
        let order = json!({"clientId": client_id});
        self.client.order(node, "/registry/undrain", &order).await;
    }

    async fn wind_down(&self, node: usize, lasts: Duration) {
        let id = id_of(self.fleet.draw(IDS));
        let order = json!({"namespace": NS, "id": id, "deadline": 15.0});
        self.client.order(node, "/registry/wind_down", &order).await;
        if self.fleet.draw(3) == 0 {
            self.fleet.domain.sleep(lasts).await;
            let order = json!({"namespace": NS, "id": id, "deadline": null});
            self.client.order(node, "/registry/wind_down", &order).await;
        }
    }

    async fn wipe(&self) {
        let calm = self.trouble.write().await;
        if self.all_are_well().await {
            self.fleet.sim.note("the store is wiped");
            self.fleet.store.wipe();
        }
        drop(calm);
    }

    async fn go_back(&self) {
        let calm = self.trouble.write().await;
        let copy = self.fleet.store.copy();
        self.fleet
            .domain
            .sleep(self.fleet.draw_time(0.0, 8.0))
            .await;
        if self.all_are_well().await {
            self.fleet.sim.note("the store goes back");
            self.fleet.store.restart_from_copy(&copy);
        }
        drop(calm);
    }

    /// Whether every worker has its session, and what it does not hold it has let go; it gets some time for that.
    async fn all_are_well(&self) -> bool {
        self.fleet.domain.sleep(Duration::from_secs(20)).await;
        let mut alive = self.fleet.alive().into_iter();
        alive.all(|worker| worker.session().is_some() && !worker.is_expired())
    }

    /// Everything works again.
    async fn mend(&self) {
        let _calm: RwLockReadGuard<'_, ()> = self.trouble.read().await;
        for worker in self.fleet.alive() {
            let order = json!({"clientId": worker.client_id()});
            self.client.order(0, "/registry/undrain", &order).await;
        }
        for id in 0..IDS {
            let order = json!({"namespace": NS, "id": id_of(id), "deadline": null});
            self.client.order(0, "/registry/wind_down", &order).await;
        }
    }
}

pub(super) fn id_of(n: usize) -> String {
    format!("id-{n}")
}

fn worker_to_nodes(fleet: &Fleet, worker: usize) -> Vec<(Host, Host)> {
    let nodes = 0..fleet.nodes.len();
    nodes
        .map(|n| (Host::Worker(worker), Host::Node(n)))
        .collect()
}

/// What the registry says of each id that somebody holds: its epochs never fall. Of rows that name the dead, a registry that went
/// back to an old copy has forgotten the latest.
pub(super) async fn look(fleet: &Fleet) {
    let Ok(sessions) = fleet.store.sessions_since(0).await else {
        return;
    };
    let lives = |session: &SessionId| sessions.changed.iter().any(|view| view.id == *session);
    for id in (0..IDS).map(id_of) {
        let key = PlacementKey::single(NS, id.as_str());
        let Ok(Some(row)) = fleet.store.row(&key).await else {
            continue;
        };
        if lives(&row.session) {
            fleet.watch.see_epoch(&id, row.epoch);
        }
    }
}

/// How long the fleet may take to come to rest (S8.8): a lease that has to run out, a quarantine, and retries.
pub(super) const BOUND: Duration = Duration::from_secs(4 * TTL.as_secs());
