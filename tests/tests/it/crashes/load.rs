//! The load on the lanes, and what is known of it afterwards.

#![allow(
    clippy::disallowed_methods,
    reason = "processes are killed and watched in real time"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use pinned::domain::{Domain, Rng};
use serde_json::{Value, json};

use super::LANES;

/// Clients at work at one time.
const CLIENTS: usize = 8;

/// Which attempt each item of each lane was executed in.
pub(super) type Executed = BTreeMap<&'static str, BTreeMap<String, u64>>;

/// Random moments and choices, the same for the same seed.
pub(super) struct Moments {
    seed: u64,
    draws: Rng,
}

impl Moments {
    pub(super) fn from_environment() -> Self {
        let seed = match std::env::var("PINNED_SEED") {
            Ok(seed) => seed.parse().expect("PINNED_SEED is a number"),
            Err(_) => u64::from(std::process::id()),
        };
        println!("PINNED_SEED={seed}");
        let draws = Domain::real_seeded(seed).rng("moments").expect("a label");
        Self { seed, draws }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    fn next(&mut self) -> u64 {
        self.draws.u64()
    }

    pub(super) fn until_the_kill(&mut self) -> Duration {
        Duration::from_millis(20 + self.next() % 500)
    }
}

/// What was asked for, and what was confirmed.
#[derive(Default)]
pub(super) struct Ledger {
    /// Sent, whether or not an answer came.
    sent: BTreeMap<&'static str, BTreeMap<String, bool>>,
    confirmed: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Ledger {
    pub(super) fn admitted(&self) -> usize {
        self.confirmed.values().map(BTreeSet::len).sum()
    }

    fn note(&mut self, done: Done) {
        let Done {
            lane,
            id,
            hold,
            confirmed,
        } = done;
        if confirmed {
            self.confirmed.entry(lane).or_default().insert(id.clone());
        }
        self.sent.entry(lane).or_default().insert(id, hold);
    }

    pub(super) fn check(&self, executed: &Executed, kills: u32) {
        for (lane, confirmed) in &self.confirmed {
            let done = &executed[lane];
            let lost: Vec<_> = confirmed
                .iter()
                .filter(|id| !done.contains_key(*id))
                .collect();
            assert!(
                lost.is_empty(),
                "{lane}: admitted and never executed: {lost:?}"
            );
        }
        for (lane, done) in executed {
            for (id, attempt) in done {
                let hold = self.sent.get(lane).and_then(|sent| sent.get(id));
                let hold = hold.unwrap_or_else(|| panic!("{lane}: {id} was never sent"));
                let least = if *hold { 2 } else { 1 };
                let most = u64::from(kills) + 1;
                assert!(
                    (least..=most).contains(attempt),
                    "{lane}: {id} (hold: {hold}) ran as attempt {attempt}"
                );
            }
        }
    }
}

struct Done {
    lane: &'static str,
    id: String,
    hold: bool,
    confirmed: bool,
}

/// One process, as its clients see it.
#[derive(Clone)]
pub(super) struct Lanes {
    url: String,
    agent: ureq::Agent,
}

/// Clients at work.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<Done>>>,
}

impl Load {
    /// Stops, and notes what was done.
    pub(super) fn join(self, ledger: &mut Ledger) {
        self.stop.store(true, Ordering::Release);
        for client in self.clients {
            for done in client.join().expect("a client") {
                ledger.note(done);
            }
        }
    }
}

impl Lanes {
    pub(super) fn new(url: String) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(5)))
            .http_status_as_error(false)
            .build();
        Self {
            url,
            agent: config.into(),
        }
    }

    /// Has clients enqueue, until they are stopped or nobody answers them any more.
    pub(super) fn under_load(&self, moments: &mut Moments, round: u32) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let clients = (0..CLIENTS)
            .map(|client| {
                let (lanes, stop, lane) =
                    (self.clone(), Arc::clone(&stop), LANES[client % LANES.len()]);
                // One item in a while is held: it stops its lane until the process is killed.
                let held_at = (moments.next() % 400) as usize;
                spawn(move || lanes.enqueue_on(lane, client, round, held_at, &stop))
            })
            .collect();
        Load { stop, clients }
    }

    fn enqueue_on(
        &self,
        lane: &'static str,
        client: usize,
        round: u32,
        held_at: usize,
        stop: &AtomicBool,
    ) -> Vec<Done> {
        let mut all = Vec::new();
        for n in 0.. {
            if stop.load(Ordering::Acquire) {
                break;
            }
            let id = format!("{round}-{client}-{n}");
            let hold = n == held_at;
            let answer = self
                .agent
                .post(format!("{}/lanes/{lane}/enqueue", self.url))
                .send_json(json!({ "id": id, "hold": hold }));
            let confirmed = answer.is_ok_and(|mut answer| {
                answer.status() == 200
                    && answer
                        .body_mut()
                        .read_json::<Value>()
                        .is_ok_and(|body| body["admitted"] == *id)
            });
            all.push(Done {
                lane,
                id,
                hold,
                confirmed,
            });
            if !confirmed {
                break;
            }
        }
        all
    }

    fn progress(&self, lane: &str) -> Value {
        self.agent
            .get(format!("{}/lanes/{lane}", self.url))
            .call()
            .expect("an answer")
            .body_mut()
            .read_json()
            .expect("JSON")
    }

    /// Waits until every lane is empty, by itself; what was executed then.
    pub(super) fn wait_until_idle(&self, patience: Duration) -> Executed {
        let deadline = Instant::now() + patience;
        LANES
            .into_iter()
            .map(|lane| {
                loop {
                    let progress = self.progress(lane);
                    if progress["queued"] == 0 {
                        let executed = serde_json::from_value(progress["executed"].clone());
                        break (lane, executed.expect("items and attempts"));
                    }
                    assert!(
                        Instant::now() < deadline,
                        "{lane} does not finish: {progress}"
                    );
                    sleep(Duration::from_millis(50));
                }
            })
            .collect()
    }
}
