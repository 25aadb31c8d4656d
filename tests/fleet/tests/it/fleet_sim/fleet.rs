//! A fleet: nodes, workers, the store that they share, and the network between them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pinboard::Pinboard;
use pinboard::passport::Passport;
use pinboard::settings::Settings;
use pinboard::store::{MemoryStore, StoreOptions};
use pinboard::testing::{FaultyStore, HttpRegistry, ScriptedWorker, StoreFaults, WorkerOptions};
use pinboard::upstream::Connector;
use pinned_domain::{Domain, Rng};
use pinned_testing::sim::{Sim, SimProcess};

use super::admission::Admission;
use super::client::Client;
use super::mutant::Mutant;
use super::net::{Host, Net};
use super::transport::Repeating;
use super::watch::Watch;

pub(super) const TTL: Duration = Duration::from_secs(15);
pub(super) const TOKEN: &str = "the-token-of-the-simulation";
/// What a node may take until it serves.
const START: Duration = Duration::from_secs(5);

/// What a fleet is made of.
#[derive(Clone, Default)]
pub(super) struct Shape {
    pub(super) nodes: usize,
    pub(super) workers: usize,
    pub(super) mutant: Option<Mutant>,
    /// Durable work, which a scanner finds; where there is any.
    pub(super) admission: Option<Arc<Admission>>,
}

pub(super) struct Fleet {
    pub(super) sim: Sim,
    pub(super) domain: Domain,
    pub(super) dice: Rng,
    pub(super) net: Net,
    pub(super) store: MemoryStore,
    pub(super) watch: Watch,
    pub(super) nodes: Vec<Node>,
    pub(super) workers: Vec<Seat>,
    shape: Shape,
}

/// A node, which may be down.
#[derive(Default)]
pub(super) struct Node {
    running: Mutex<Option<Running>>,
}

struct Running {
    process: SimProcess,
    pinboard: Arc<Mutex<Option<Pinboard>>>,
    faults: StoreFaults,
}

/// The place of a worker: whoever comes after one that has crashed stands at the same address.
#[derive(Default)]
pub(super) struct Seat {
    taken: Mutex<(u32, Option<ScriptedWorker>)>,
}

impl Fleet {
    /// One that runs, and whose workers are about to register.
    pub(super) async fn start(sim: &Sim, shape: Shape) -> Arc<Self> {
        let domain = sim.domain();
        let options = StoreOptions {
            lease_ttl: TTL,
            quarantine: Mutant::quarantine(shape.mutant, TTL),
            shards: 1,
        };
        let fleet = Arc::new(Self {
            sim: sim.clone(),
            dice: domain.rng("fleet").expect("a label"),
            net: Net::new(domain.clone()),
            store: MemoryStore::new(options, domain.clone()),
            watch: Watch::default(),
            nodes: (0..shape.nodes).map(|_| Node::default()).collect(),
            workers: (0..shape.workers).map(|_| Seat::default()).collect(),
            shape,
            domain,
        });
        if let Some(admission) = &fleet.shape.admission {
            admission.belongs_to(&fleet);
        }
        for node in 0..fleet.nodes.len() {
            fleet.start_node(node).await;
        }
        for worker in 0..fleet.workers.len() {
            fleet.hire(worker);
        }
        fleet
    }

    pub(super) fn client(self: &Arc<Self>) -> Client {
        Client::new(self)
    }

    /// One of so many.
    pub(super) fn draw(&self, n: usize) -> usize {
        usize::try_from(self.dice.below(n as u64)).expect("it is below a usize")
    }

    /// So long at most.
    pub(super) fn draw_time(&self, low: f64, high: f64) -> Duration {
        Duration::from_secs_f64(self.dice.uniform(low..high))
    }

    /// Ends everybody. Who listens on the network holds it, and the other way round.
    pub(super) fn end(&self) {
        for n in 0..self.nodes.len() {
            self.crash_node(n);
        }
        for n in 0..self.workers.len() {
            self.crash_worker(n);
        }
        self.net.close();
    }

    // --- Nodes ---

    /// Starts a node that is down; whether it serves.
    pub(super) async fn start_node(&self, n: usize) -> bool {
        let process = self.sim.process(&format!("node-{n}"));
        let domain = process.domain();
        let inner = Arc::new(self.store.node());
        let (store, faults) = FaultyStore::new(inner, domain.clone());
        if let Some(mutant) = self.shape.mutant {
            mutant.sabotage(&self.store, &faults);
        }
        let mut settings = Settings::default();
        settings.lease_ttl = TTL;
        settings.shards = 1;
        let mut builder = Pinboard::builder()
            .store(Arc::new(store))
            .passport(Passport::dev(TOKEN).expect("a token"))
            .settings(settings)
            .domain(domain.clone())
            .connector(Connector::new(self.net.dial_from(n)));
        if let Some(admission) = &self.shape.admission {
            builder = builder.marked_rows(Arc::new(admission.rows(&self.watch.ledger)));
        }
        let starting = process.run(async move { builder.start().await });
        let pinboard = match self.domain.timeout(START, starting).await {
            Ok(Ok(Ok(pinboard))) => Arc::new(Mutex::new(Some(pinboard))),
            Ok(Ok(Err(error))) => {
                self.watch
                    .violation(format!("node {n} does not start: {error}"));
                return false;
            }
            // It crashed, or its store is away.
            Ok(Err(_)) | Err(_) => {
                process.crash();
                return false;
            }
        };
        self.net.listen(Host::Node(n), {
            let (pinboard, domain) = (Arc::clone(&pinboard), domain.clone());
            move |stream| {
                let peer = ([10, 0, 0, 1], 1).into();
                let serving = pinboard.lock();
                if let Some(pinboard) = &*serving {
                    domain.spawn(pinboard.serve_connection(stream, peer));
                }
            }
        });
        *self.nodes[n].running.lock() = Some(Running {
            process,
            pinboard,
            faults,
        });
        true
    }

    /// Kills a node; whether it was up.
    pub(super) fn crash_node(&self, n: usize) -> bool {
        let running = self.nodes[n].running.lock().take();
        let Some(running) = running else {
            return false;
        };
        running.process.crash();
        self.net.remove(Host::Node(n));
        drop(running.pinboard.lock().take());
        true
    }

    /// Stops a node in good order; whether it was up.
    pub(super) async fn stop_node(&self, n: usize) -> bool {
        let running = self.nodes[n].running.lock().take();
        let Some(running) = running else {
            return false;
        };
        let pinboard = running.pinboard.lock().take();
        if let Some(pinboard) = pinboard {
            let _ = running.process.run(pinboard.shutdown()).await;
        }
        running.process.crash();
        self.net.remove(Host::Node(n));
        true
    }

    /// What can be done to a node's way to the store.
    pub(super) fn store_of(&self, n: usize) -> Option<StoreFaults> {
        let running = self.nodes[n].running.lock();
        running.as_ref().map(|running| running.faults.clone())
    }

    // --- Workers ---

    /// Someone new takes a seat that is free.
    pub(super) fn hire(&self, n: usize) {
        let mut seat = self.workers[n].taken.lock();
        seat.0 += 1;
        let name: Arc<str> = format!("worker-{n}/{}", seat.0).into();
        let url = format!("http://{}", Net::address(n));
        let handler = self.watch.handler(
            Arc::clone(&name),
            self.domain.clone(),
            self.shape.mutant,
            self.shape.admission.clone(),
        );
        let options = WorkerOptions::new(Arc::clone(&name), url)
            .log(self.watch.log.clone())
            .idle_timeout(Duration::from_secs(40))
            .handler(handler);
        let (net, dice, nodes) = (self.net.clone(), self.dice.clone(), self.nodes.len() as u64);
        let registry = HttpRegistry::over("registry", TOKEN, self.domain.clone(), move || {
            let node = usize::try_from(dice.below(nodes)).expect("few nodes");
            let net = net.clone();
            async move { net.connect(Host::Worker(n), Host::Node(node)).await }
        });
        let registry = Repeating::new(registry, self.domain.clone());
        let worker = ScriptedWorker::new(options, registry, self.domain.clone());
        self.watch.know(name, worker.clone());
        self.net.listen(Host::Worker(n), {
            let (worker, domain) = (worker.clone(), self.domain.clone());
            move |stream| {
                let worker = worker.clone();
                domain.spawn(async move { worker.serve_connection(stream).await });
            }
        });
        worker.start();
        seat.1 = Some(worker);
    }

    /// Kills a worker; whether there was one.
    pub(super) fn crash_worker(&self, n: usize) -> bool {
        let worker = self.workers[n].taken.lock().1.take();
        let Some(worker) = worker else {
            return false;
        };
        worker.crash();
        self.net.remove(Host::Worker(n));
        true
    }

    /// Has a worker leave in good order.
    pub(super) async fn dismiss(&self, n: usize) -> bool {
        let worker = self.workers[n].taken.lock().1.take();
        let Some(worker) = worker else {
            return false;
        };
        worker.shutdown().await;
        self.net.remove(Host::Worker(n));
        true
    }

    /// In which seat the worker is that the log calls `name`.
    pub(super) fn seat_of(&self, name: &str) -> Option<usize> {
        let (seat, _) = name.strip_prefix("worker-")?.split_once('/')?;
        seat.parse().ok()
    }

    pub(super) fn worker(&self, n: usize) -> Option<ScriptedWorker> {
        self.workers[n].taken.lock().1.clone()
    }

    /// Those that have not crashed.
    pub(super) fn alive(&self) -> Vec<ScriptedWorker> {
        (0..self.workers.len())
            .filter_map(|n| self.worker(n))
            .collect()
    }
}
