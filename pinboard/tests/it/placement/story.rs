//! A fleet in which everything goes wrong by chance, from a seed: slow and broken connections to the store, workers that
//! drain, hang and die, nodes whose knowledge is old. At no instant may two workers serve one id (P4.6), and nobody waits for
//! ever.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pinboard::placement::{NotPlaced, Placed, WorkerRefusal};
use pinboard::store::{EndMode, Heartbeat, HeartbeatOutcome, NewSession, RegistryStore, Release};
use pinned_domain::{Domain, Rng, TaskHandle};
use pinned_testing::sim::{Sim, SimOptions};
use tokio::time::Instant;

use super::scene::*;
use super::spy::Spy;

const IDS: u64 = 12;
const LASTS: Duration = Duration::from_secs(90);
/// How long before its lease ends a worker takes no more ids.
const BUFFER: Duration = Duration::from_secs(5);

/// The worker's half: what it holds, and until when it may serve (W7).
struct Host {
    fleet: Arc<Fleet>,
    name: String,
    store: Spy,
    state: Mutex<State>,
    /// Everyone's, for the check.
    everyone: Arc<Mutex<Everyone>>,
}

#[derive(Default)]
struct Everyone {
    /// By id, who has it resident.
    hosts: BTreeMap<String, BTreeSet<String>>,
    /// Until when each may serve.
    leases: BTreeMap<String, Instant>,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    lease_ends: Option<Instant>,
    draining: bool,
    /// By id, the epoch.
    resident: BTreeMap<String, u64>,
    released: BTreeMap<String, u64>,
    /// Those that are closing.
    closing: BTreeSet<String>,
}

enum Reply {
    Served,
    Refused(WorkerRefusal),
    /// The session is another by now, or there is none.
    NotThere,
}

impl Host {
    /// Takes one request, and is at it for a while.
    async fn request(&self, placed: &Placed, id: &str) -> Reply {
        {
            let mut state = self.state.lock();
            let now = self.fleet.domain.monotonic();
            let same = |session: &Session| session.id == placed.worker.id;
            if !state.session.as_ref().is_some_and(same) {
                return Reply::NotThere;
            }
            let left = state
                .lease_ends
                .map_or(Duration::ZERO, |ends| ends.saturating_duration_since(now));
            if left.is_zero() {
                return Reply::Refused(WorkerRefusal::NotResident);
            }
            if state.closing.contains(id) {
                return Reply::Refused(WorkerRefusal::Moving);
            }
            match state.resident.get(id) {
                Some(epoch) if placed.epoch < *epoch => {
                    return Reply::Refused(WorkerRefusal::Moving);
                }
                Some(_) => {}
                None if state.released.get(id) >= Some(&placed.epoch) => {
                    return Reply::Refused(WorkerRefusal::Moving);
                }
                None if left <= BUFFER || state.draining => {
                    // Another request of this epoch may come when the worker takes ids again: too late by then.
                    state.released.insert(id.to_owned(), placed.epoch);
                    return Reply::Refused(WorkerRefusal::NotResident);
                }
                None => {}
            }
            state.resident.insert(id.to_owned(), placed.epoch);
            let mut everyone = self.everyone.lock();
            let Everyone { hosts, leases } = &mut *everyone;
            let hosts = hosts.entry(id.to_owned()).or_default();
            hosts.insert(self.name.clone());
            let serving: Vec<_> = hosts.iter().filter(|host| now < leases[*host]).collect();
            assert!(serving.len() == 1, "P4.6: {id} is served by {serving:?}");
        }
        Reply::Served
    }

    /// One id goes, and its row is handed back.
    async fn let_go(&self, id: &str) {
        let release = {
            let mut state = self.state.lock();
            let (Some(session), Some(epoch)) =
                (state.session.clone(), state.resident.get(id).copied())
            else {
                return;
            };
            state.closing.insert(id.to_owned());
            Release {
                session: session.id,
                key: key(id),
                epoch: Some(epoch),
            }
        };
        // Closing takes a while; nothing of it lives when the row is handed back.
        self.fleet.domain.sleep(ms(30)).await;
        {
            let mut state = self.state.lock();
            state.closing.remove(id);
            if let Some(epoch) = state.resident.remove(id) {
                state.released.insert(id.to_owned(), epoch);
                self.gone(id);
            }
        }
        for _ in 0..3 {
            if self
                .store
                .release(std::slice::from_ref(&release))
                .await
                .is_ok()
            {
                break;
            }
            self.fleet.domain.sleep(ms(200)).await;
        }
    }

    fn renewed(&self, sent: Instant) {
        self.state.lock().lease_ends = Some(sent + TTL);
        let mut everyone = self.everyone.lock();
        everyone.leases.insert(self.name.clone(), sent + TTL);
    }

    fn gone(&self, id: &str) {
        if let Some(hosts) = self.everyone.lock().hosts.get_mut(id) {
            hosts.remove(&self.name);
        }
    }

    /// The process is no more, or its lease has ended: nothing lives in it.
    fn die(&self) {
        let mut state = self.state.lock();
        for id in std::mem::take(&mut *state).resident.keys() {
            self.gone(id);
        }
    }

    /// Lives: registers, beats, and now and then drains, hangs or dies.
    async fn live(self: Arc<Self>, rng: Rng, lives: Arc<AtomicU64>) {
        let domain = self.fleet.domain.clone();
        loop {
            let life = lives.fetch_add(1, Ordering::Relaxed);
            let session = self
                .fleet
                .session(&format!("{life:04}-{}", self.name), 1_000);
            let sent = domain.monotonic();
            let new = NewSession {
                id: session.id.clone(),
                record: session.record.clone(),
            };
            if self.store.register(new).await.is_err() {
                domain.sleep(SECOND).await;
                continue;
            }
            self.state.lock().session = Some(session.clone());
            self.renewed(sent);
            self.live_once(&session, &rng).await;
            self.die();
            domain.sleep(rng_time(&rng, 3_000)).await;
        }
    }

    async fn live_once(self: &Arc<Self>, session: &Session, rng: &Rng) {
        let domain = self.fleet.domain.clone();
        let mut session = session.clone();
        loop {
            // The lease ends on the worker's own clock, whatever else it waits for.
            let ends = self.state.lock().lease_ends.unwrap_or(domain.monotonic());
            let left = ends.saturating_duration_since(domain.monotonic());
            if left.is_zero() {
                return;
            }
            let _ = domain.timeout(left, domain.sleep(3 * SECOND)).await;
            match rng.below(40) {
                // Killed.
                0 => return,
                // Cut off from the store, for longer than a lease perhaps.
                1 | 2 => self.store.set_away(true),
                // Drains, and ends when it is empty.
                3 => {
                    self.state.lock().draining = true;
                    session.record.update.draining = true;
                }
                4..=9 => self.store.set_away(false),
                10..=14 => {
                    let resident: Vec<_> = self.state.lock().resident.keys().cloned().collect();
                    if !resident.is_empty() {
                        let id = &resident[rng.below(resident.len() as u64) as usize];
                        self.let_go(id).await;
                    }
                }
                _ => {}
            }
            let sent = domain.monotonic();
            let beat = self.store.heartbeat(Heartbeat {
                session: session.id.clone(),
                update: session.record.update.clone(),
                acks: Vec::new(),
            });
            let left = ends.saturating_duration_since(sent);
            match domain.timeout(left, beat).await {
                Ok(Ok(HeartbeatOutcome::Renewed { .. })) => {
                    self.renewed(sent);
                }
                Ok(Ok(_)) => return,
                Ok(Err(_)) | Err(_) => {}
            }
            if self.state.lock().draining {
                let resident: Vec<_> = self.state.lock().resident.keys().cloned().collect();
                for id in resident {
                    self.let_go(&id).await;
                }
                let ended = self.store.end_session(&session.id, EndMode::Now).await;
                if ended.is_ok() {
                    return;
                }
            }
        }
    }
}

fn rng_time(rng: &Rng, millis: u64) -> Duration {
    ms(rng.below(millis))
}

/// A client: asks through one node, and does what a proxy does with a refusal.
async fn ask(node: &Node, hosts: &[Arc<Host>], id: &str) -> Result<bool, NotPlaced> {
    let mut placed = node.resolve(id).await?;
    for _ in 0..4 {
        let host = hosts
            .iter()
            .find(|host| placed.worker.client_id().ends_with(&host.name));
        let host = host.expect("there is no other");
        node.domain.sleep(ms(2)).await;
        let refusal = match host.request(&placed, id).await {
            Reply::Served => return Ok(true),
            Reply::NotThere => return Ok(false),
            Reply::Refused(refusal) => refusal,
        };
        match node.placement.after_refusal(&placed, refusal).await? {
            Some(next) => placed = next,
            None => return Ok(false),
        }
    }
    Ok(false)
}

async fn story(sim: Sim) -> (u64, u64) {
    let domain: Domain = sim.domain();
    let fleet = Arc::new(Fleet::new(domain.clone()).await);
    let everyone = Arc::default();
    let lives = Arc::new(AtomicU64::new(0));
    let rng = domain.rng("story").expect("a label");
    let distant = || Spy::distant(fleet.handle(), domain.clone(), ms(40));
    let hosts: Vec<_> = ["a", "b", "c", "d"]
        .map(|name| {
            Arc::new(Host {
                fleet: Arc::clone(&fleet),
                name: name.to_owned(),
                store: distant(),
                state: Mutex::default(),
                everyone: Arc::clone(&everyone),
            })
        })
        .into();
    let mut tasks: Vec<TaskHandle<()>> = Vec::new();
    for host in &hosts {
        let life = Arc::clone(host).live(rng.clone(), Arc::clone(&lives));
        tasks.push(domain.spawn(life));
    }
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let mut node = Node::new(distant(), &domain, settings());
        node.listen();
        tasks.push(node.keep_reading());
        nodes.push(Arc::new(node));
    }
    domain.sleep(SECOND).await;
    let (served, asked) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut clients = Vec::new();
    for client in 0..24 {
        let (node, hosts, rng) = (Arc::clone(&nodes[client % 3]), hosts.clone(), rng.clone());
        let (served, asked) = (Arc::clone(&served), Arc::clone(&asked));
        clients.push(domain.spawn(async move {
            let until = node.domain.monotonic() + LASTS;
            while node.domain.monotonic() < until {
                if rng.below(400) == 0 {
                    node.store.set_away(true);
                } else if rng.below(60) == 0 {
                    node.store.set_away(false);
                }
                let id = format!("id-{}", rng.below(IDS));
                let before = node.domain.monotonic();
                let outcome = ask(&node, &hosts, &id).await;
                let took = node.domain.monotonic() - before;
                assert!(took < 30 * SECOND, "{id} took {took:?}");
                asked.fetch_add(1, Ordering::Relaxed);
                if outcome == Ok(true) {
                    served.fetch_add(1, Ordering::Relaxed);
                }
                node.domain.sleep(rng_time(&rng, 200)).await;
            }
        }));
    }
    for client in clients {
        client.await.expect("it runs");
    }
    tasks.iter().for_each(TaskHandle::abort);
    for node in &nodes {
        assert!(format!("{:?}", node.placement).contains("under_way: 0"));
    }
    (
        served.load(Ordering::Relaxed),
        asked.load(Ordering::Relaxed),
    )
}

// P4.6, P5.9, P5.10, P12.3, P12.4
#[test]
fn whatever_goes_wrong_no_id_is_served_by_two() {
    let seeds = std::env::var("PINBOARD_PLACEMENT_SEEDS");
    let seeds: u64 = seeds.ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(6);
    let (mut served, mut asked) = (0, 0);
    for seed in 0..seeds {
        let outcome = Sim::try_run(SimOptions::new(seed), story);
        let outcome = outcome.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        served += outcome.0;
        asked += outcome.1;
    }
    // Otherwise it would show nothing.
    assert!(served * 2 > asked, "{served} of {asked} were served");
}
