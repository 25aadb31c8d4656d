//! Workers, a store and everything that goes wrong between them: nothing lives twice, and nothing is lost.

use std::sync::Arc;
use std::time::Duration;

use pinboard::store::{Drain, MemoryStore, PlacementKey, RegistryStore as _, StoreOptions};
use pinboard::testing::{
    ActivationLog, Counters, FaultyStore, InstanceKey, Ledger, ScriptedWorker, StoreFaults,
    WorkerOptions,
};
use pinned_domain::{Domain, Rng};
use pinned_testing::sim::Sim;

use super::plane::Plane;

const TTL: Duration = Duration::from_secs(15);
const IDS: u64 = 8;
const STEPS: usize = 150;

struct Story {
    domain: Domain,
    dice: Rng,
    store: MemoryStore,
    planes: Vec<(Plane, StoreFaults)>,
    workers: Vec<ScriptedWorker>,
    log: ActivationLog,
    ledger: Ledger,
}

impl Story {
    fn new(sim: &Sim) -> Self {
        let domain = sim.domain();
        let options = StoreOptions {
            lease_ttl: TTL,
            quarantine: TTL,
            shards: 1,
        };
        let store = MemoryStore::new(options, domain.clone());
        let planes = (0..2).map(|_| {
            let node = Arc::new(store.node());
            let (faulty, faults) = FaultyStore::new(node, domain.clone());
            let plane = Plane::new(Arc::new(faulty), TTL, domain.clone());
            (plane, faults)
        });
        Self {
            dice: domain.rng("story").expect("a label"),
            planes: planes.collect(),
            workers: Vec::new(),
            log: ActivationLog::new(),
            ledger: Ledger::new(),
            store,
            domain,
        }
    }

    /// A worker that all planes can reach, and that registers with one of them.
    fn hire(&mut self) {
        let n = self.workers.len();
        let (name, url) = (format!("worker-{n}"), format!("http://worker-{n}"));
        let options = WorkerOptions::new(name, &url)
            .log(self.log.clone())
            .idle_timeout(Duration::from_secs(40))
            .handler(Counters::kept_in(self.ledger.clone()));
        let home = n % self.planes.len();
        let worker = self.planes[home]
            .0
            .worker(options, &url, self.domain.clone());
        for (plane, _) in &self.planes {
            plane.know(&url, &worker);
        }
        worker.start();
        self.workers.push(worker);
    }

    /// Some worker that has not crashed.
    fn any(&self) -> Option<&ScriptedWorker> {
        let alive = self.workers.iter().rev().take(4);
        let alive: Vec<_> = alive.collect();
        let drawn = self.dice.below(alive.len().max(1) as u64);
        alive.get(usize::try_from(drawn).ok()?).copied()
    }

    async fn increment(&self) -> bool {
        let id = format!("id-{}", self.dice.below(IDS));
        let n = usize::try_from(self.dice.below(2)).expect("small");
        let limit = Duration::from_secs(8);
        let asked = self.planes[n].0.ask(&id, "POST", "/increment");
        match self.domain.timeout(limit, asked).await {
            Ok(Some(answer)) if answer.status == 200 => {
                let count = answer.text().parse().expect("a count");
                self.ledger
                    .acknowledge(&InstanceKey::new("/counters", id), count);
                true
            }
            _ => false,
        }
    }

    /// Time goes by, long enough for leases to pass; and others ask for what they held.
    async fn live_on(&self) {
        for _ in 0..self.dice.below(2 * IDS) {
            let pause = Duration::from_secs(self.dice.below(6));
            self.domain.sleep(pause).await;
            self.increment().await;
        }
    }

    /// Every worker that lives has its session, and what it does not hold it has let go.
    ///
    /// A store that loses everything takes the word of whoever comes first (P4.4), and one that was cut off past its lease
    /// does not know that its ids have gone to others: the two faults together are more than the registry can tell apart,
    /// until the true holder's next heartbeat.
    async fn all_is_well(&self) {
        for (_, faults) in &self.planes {
            faults.calm();
        }
        for worker in &self.workers {
            worker.knobs().thaw();
            worker.knobs().isolate(false);
        }
        self.domain.sleep(4 * TTL).await;
    }

    async fn step(&mut self) {
        match self.dice.below(100) {
            0..60 => drop(self.increment().await),
            60..66 => {
                self.domain
                    .sleep(Duration::from_secs(self.dice.below(20)))
                    .await
            }
            66..70 => {
                if let Some(worker) = self.any() {
                    worker.crash();
                }
                self.hire();
            }
            70..74 => {
                if let Some(worker) = self.any() {
                    worker.knobs().freeze();
                }
                self.live_on().await;
            }
            74..80 => self.workers.iter().for_each(|worker| worker.knobs().thaw()),
            80..83 => {
                if let Some(worker) = self.any() {
                    worker.knobs().isolate(true);
                }
                self.live_on().await;
            }
            83..88 => {
                let isolated = self.workers.iter();
                isolated.for_each(|worker| worker.knobs().isolate(false));
            }
            88..90 => {
                self.all_is_well().await;
                self.store.wipe();
            }
            90..92 => {
                self.all_is_well().await;
                let copy = self.store.copy();
                self.domain
                    .sleep(Duration::from_secs(self.dice.below(10)))
                    .await;
                self.increment().await;
                self.store.restart_from_copy(&copy);
            }
            92..94 => {
                let drain = [Some(Drain::Cordon), None, Some(Drain::By { left: TTL })];
                let drain = drain[usize::try_from(self.dice.below(3)).expect("small")];
                if let Some(worker) = self.any() {
                    let client = worker.client_id();
                    self.store
                        .order_drain(client, drain)
                        .await
                        .expect("ordered");
                }
            }
            94..96 => drop(self.store.sweep().await),
            _ => {
                let (_, faults) = &self.planes[usize::from(self.dice.below(2) == 1)];
                faults.rates(0.1 * self.dice.uniform(0.0..1.0), 0.1);
                faults.latency(Duration::ZERO..=Duration::from_millis(500));
            }
        }
    }

    /// Everything works again, and so does the fleet.
    async fn settle(&mut self) {
        self.hire();
        self.all_is_well().await;
        let mut served = 0;
        for _ in 0..20 {
            served += usize::from(self.increment().await);
        }
        assert!(served > 0, "the fleet serves again");
    }
}

// P4.6, P12.1, P12.2, P12.3
#[test]
fn whatever_happens_nothing_lives_twice_and_nothing_is_lost() {
    for seed in 0..16 {
        Sim::run(seed, |sim| async move {
            let mut story = Story::new(&sim);
            for _ in 0..3 {
                story.hire();
            }
            sim.advance(TTL + Duration::from_secs(5)).await;
            for _ in 0..STEPS {
                story.step().await;
            }
            story.settle().await;
            story.log.assert_no_overlap();
            story.ledger.assert_nothing_lost();
            let id = PlacementKey::single("/counters", "id-0");
            story.store.row(&id).await.expect("the store answers");
        });
    }
}
