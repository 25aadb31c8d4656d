//! The cluster story (S8): an owner dies while it admits work, twice, and the registry is lost once.
//!
//! Its workers are scripted, and the ledger is their durable store. Differs from the text in that no wall clock steps back: a
//! simulation has none.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use pinboard::store::{PlacementKey, RegistryStore as _, Row};
use pinboard::testing::InstanceKey;
use pinned_testing::sim::Sim;

use super::Outcome;
use super::admission::{Admission, MOMENTS};
use super::client::{Client, NS};
use super::fleet::{Fleet, Shape, TTL};
use super::program::BOUND;
use super::settle::settle;

const ID: &str = "work";
/// How many laps a fleet may take (S8.8), and how long each is.
const LAPS: usize = 40;
const LAP: Duration = Duration::from_secs(1);

struct Story {
    fleet: Arc<Fleet>,
    client: Client,
    admission: Arc<Admission>,
    key: InstanceKey,
}

pub(super) fn run(seed: u64) -> Outcome {
    let (violations, trace) = Sim::run(seed, move |sim| async move {
        let admission = Arc::new(Admission::default());
        let shape = Shape {
            nodes: 2,
            workers: 2,
            mutant: None,
            admission: Some(Arc::clone(&admission)),
        };
        let fleet = Fleet::start(&sim, shape).await;
        // S8.2
        sim.advance(TTL + TTL / 3).await;
        let story = Story {
            client: fleet.client(),
            fleet,
            admission,
            key: InstanceKey::new(NS, ID),
        };
        story.tell().await;
        let outcome = (story.fleet.watch.verdict(), sim.trace());
        story.fleet.end();
        outcome
    });
    let trace = trace.iter().map(ToString::to_string).collect();
    Outcome { violations, trace }
}

impl Story {
    async fn tell(&self) {
        // S8.3
        for _ in 0..3 {
            self.admits().await;
        }
        self.converges().await;
        // S8.4
        let before = self.row().await;
        let dead = self.owner_dies().await;
        self.comes_back_above(before).await;
        self.admits().await;
        self.is_fenced(before);
        self.admits().await;
        self.fleet.hire(dead);
        self.converges().await;
        // S8.5
        let before = self.row().await;
        let dead = self.owner_dies().await;
        self.fleet.store.wipe();
        self.comes_back_above(before).await;
        self.admits().await;
        self.is_fenced(before);
        self.fleet.hire(dead);
        self.converges().await;
        self.expect(!self.admission.is_marked(&self.key), "S8.5: it is drained");
        // S8.9
        let writes = self.fleet.watch.ledger.writes(&self.key);
        let mut epochs: Vec<_> = writes.iter().map(|write| write.epoch).collect();
        epochs.dedup();
        self.expect(
            epochs.len() >= 3,
            "S8.9: it was placed again at least twice",
        );
    }

    fn expect(&self, holds: bool, what: &str) {
        if !holds {
            self.fleet.watch.violation(what);
        }
    }

    /// A client has something admitted; it comes again until it is told so.
    async fn admits(&self) {
        for _ in 0..LAPS {
            let node = self.fleet.draw(self.fleet.nodes.len());
            let status = self.client.increment(node, ID).await;
            self.fleet
                .sim
                .note(format!("asked through node-{node}: {status:?}"));
            if status == Some(StatusCode::OK) {
                return;
            }
            self.fleet.domain.sleep(LAP).await;
        }
        self.expect(false, "S8.8: nothing is admitted any more");
    }

    async fn converges(&self) {
        settle(&self.fleet, &self.client, &[ID.to_owned()], BOUND).await;
    }

    async fn row(&self) -> u64 {
        self.held().await.map_or(0, |row| row.epoch)
    }

    async fn held(&self) -> Option<Row> {
        let row = self.fleet.store.row(&PlacementKey::single(NS, ID)).await;
        row.ok().flatten()
    }

    /// The owner dies within the next admission; its seat.
    async fn owner_dies(&self) -> usize {
        let seats = || (0..self.fleet.workers.len()).filter(|n| self.fleet.worker(*n).is_none());
        let moment = self.fleet.draw(MOMENTS);
        self.fleet
            .sim
            .note(format!("the owner is to die at moment {moment}"));
        self.admission.arm(moment);
        let node = self.fleet.draw(self.fleet.nodes.len());
        let status = self.client.increment(node, ID).await;
        self.expect(
            status != Some(StatusCode::OK),
            "S8.4: nobody was there to say so",
        );
        let dead = seats().next();
        self.expect(dead.is_some(), "S8.4: the owner dies");
        dead.unwrap_or_default()
    }

    /// Marked work has its id placed again by sweeps and heartbeats alone, above every epoch before; other work waits for the next
    /// request.
    async fn comes_back_above(&self, before: u64) {
        if !self.admission.is_marked(&self.key) {
            return;
        }
        for lap in 0..LAPS {
            let lives = |session: &str| {
                let mut alive = self.fleet.alive().into_iter();
                alive.any(|worker| {
                    worker.session().is_some_and(|own| *own == *session)
                        && worker.instances().contains(&self.key)
                })
            };
            if let Some(row) = self.held().await
                && lives(row.session.as_str())
            {
                self.fleet.sim.note(format!("resurrected in lap {lap}"));
                return self.expect(row.epoch > before, "S8.5: it comes back above");
            }
            self.fleet.domain.sleep(LAP).await;
        }
        self.expect(false, "S8.5: sweeps alone bring it back");
    }

    /// A writer of an epoch before is refused.
    fn is_fenced(&self, before: u64) {
        let stale = self.fleet.watch.ledger.append(&self.key, before, "a ghost");
        self.expect(stale.is_err(), "S8.4: a stale epoch is fenced");
    }
}
