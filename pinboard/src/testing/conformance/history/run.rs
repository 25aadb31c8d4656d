//! The tasks.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pinned_domain::Rng;
use tokio::task::yield_now;

use super::super::scene::{Scene, Worker, claim, update};
use super::super::verdict::Verdict;
use super::check::check;
use super::log::{Fact, Log, Row};
use crate::store::{
    Claim, Claimed, EndMode, Expected, Fence, Heartbeat, HeartbeatOutcome, NewSession,
    PlacementKey, Reclaimed, RegistryStore, Release, SessionId, SessionRecord,
};

const RULE: &str = "P4.2 (anything at once)";
const TASKS: usize = 24;
const STEPS: usize = 120;
const KEYS: usize = 10;

pub(in super::super) async fn checks(scene: &Scene) {
    let ns = scene.ns();
    let log = Arc::new(Log::default());
    let nodes = [scene.node().await, scene.node().await, scene.node().await];
    let sessions = Arc::new(Mutex::new(Vec::new()));
    let keys: Arc<[_]> = (0..KEYS)
        .map(|n| PlacementKey::single(ns.clone(), format!("id-{n}")))
        .collect();
    let mut tasks = Vec::new();
    for n in 0..TASKS {
        let label = format!("conformance history {n}");
        let Ok(rng) = scene.domain.rng(&label) else {
            panic!("a label is not empty");
        };
        let mut task = Task {
            store: Arc::clone(&nodes[n % nodes.len()]),
            keys: Arc::clone(&keys),
            sessions: Arc::clone(&sessions),
            slot: n,
            log: Arc::clone(&log),
            record: scene.record(from_ref(&ns)),
            own: SessionId::new(""),
            rng,
        };
        task.sessions.lock().push(None);
        tasks.push(scene.domain.spawn(async move {
            task.begin().await;
            for _ in 0..STEPS {
                yield_now().await;
                task.step().await;
            }
        }));
    }
    for task in tasks {
        if let Err(error) = task.await {
            panic!("{RULE}: {error}");
        }
    }
    check(&log.facts());
    // The store is as usable as before.
    let worker: Worker = scene.worker(from_ref(&ns)).await;
    let key = PlacementKey::single(ns, "afterwards");
    let asked = claim(&key, &worker, Expected::Vacant);
    scene.store.claim(asked).await.holds(RULE).placed(RULE);
}

/// A worker, and a node that serves requests.
struct Task {
    store: Arc<dyn RegistryStore>,
    keys: Arc<[PlacementKey]>,
    /// The latest session of each task.
    sessions: Arc<Mutex<Vec<Option<SessionId>>>>,
    slot: usize,
    log: Arc<Log>,
    record: SessionRecord,
    own: SessionId,
    rng: Rng,
}

impl Task {
    async fn step(&mut self) {
        let key = self.keys[self.draw(KEYS)].clone();
        match self.draw(100) {
            0..40 => self.resolve(&key).await,
            40..52 => drop(self.read(&key).await),
            52..70 => self.release(&key).await,
            70..75 => self.fence(&key).await,
            75..80 => self.lift(&key).await,
            80..88 => self.beat().await,
            88..92 => self.restart().await,
            92..96 => self.reregister(&key).await,
            _ => drop(self.store.sweep().await.holds(RULE)),
        }
    }

    fn draw(&self, below: usize) -> usize {
        let drawn = self.rng.below(below as u64);
        usize::try_from(drawn).unwrap_or_default()
    }

    /// Begins a session of its client.
    async fn begin(&mut self) -> Option<SessionId> {
        let own = SessionId::new(format!("{:016x}{:016x}", self.rng.u64(), self.rng.u64()));
        let begun = self.log.begin();
        let session = NewSession {
            id: own.clone(),
            record: self.record.clone(),
        };
        let registered = self.store.register(session).await.holds(RULE);
        if let Some(earlier) = &registered.earlier {
            self.log.record(begun, Fact::Retired(earlier.clone()));
        }
        self.log.record(begun, Fact::Began(own.clone()));
        self.sessions.lock()[self.slot] = Some(own.clone());
        self.own = own;
        registered.earlier
    }

    /// Ends its session, as a worker that crashed and came back.
    async fn restart(&mut self) {
        let begun = self.log.begin();
        let lived = self.store.end_session(&self.own, EndMode::Now).await;
        assert!(lived.holds(RULE), "{RULE}: {} lived", self.own);
        self.log.record(begun, Fact::Ended(self.own.clone()));
        self.begin().await;
    }

    /// Registers again with what it may hold, as a worker that lost its session.
    async fn reregister(&mut self, key: &PlacementKey) {
        let former = self.own.clone();
        let held = self.keys.iter().filter(|_| self.draw(4) == 0);
        let keys: Vec<_> = held.chain([key]).cloned().collect();
        let earlier = self.begin().await;
        assert_eq!(earlier.as_ref(), Some(&former), "{RULE}: the earlier one");
        let begun = self.log.begin();
        let reclaimed = self.store.reclaim(&self.own, from_ref(&former), &keys);
        let reclaimed = reclaimed.await.holds(RULE);
        for (key, reclaimed) in keys.iter().zip(reclaimed) {
            let holder = self.own.clone();
            let row = match reclaimed {
                Reclaimed::Claimed { epoch } => Row::Placed {
                    holder,
                    epoch,
                    over: None,
                },
                Reclaimed::Moved { epoch } => Row::Moved { holder, epoch },
                Reclaimed::Duplicate => continue,
            };
            self.of(begun, key, row);
        }
        let begun = self.log.begin();
        let ended = self.store.end_session(&former, EndMode::Now).await;
        ended.holds(RULE);
        self.log.record(begun, Fact::Ended(former));
    }

    async fn beat(&self) {
        // Its own, or that of another task, which may end meanwhile.
        let session = match self.draw(2) {
            0 => self.own.clone(),
            _ => self.any(),
        };
        let begun = self.log.begin();
        let heartbeat = Heartbeat {
            session: session.clone(),
            update: update(1024),
            acks: Vec::new(),
        };
        let taken = match self.store.heartbeat(heartbeat).await.holds(RULE) {
            HeartbeatOutcome::Renewed { .. } => true,
            HeartbeatOutcome::Unknown => false,
            HeartbeatOutcome::Superseded => panic!("{RULE}: nobody has displaced {session}"),
        };
        self.log.record(begun, Fact::Beat(session, taken));
    }

    /// The latest session of some task that has one.
    fn any(&self) -> SessionId {
        let drawn = self.draw(TASKS);
        let sessions = self.sessions.lock();
        let any = sessions.get(drawn).cloned().flatten();
        any.unwrap_or_else(|| self.own.clone())
    }

    /// Places an id, or takes it over.
    async fn resolve(&self, key: &PlacementKey) {
        let candidate = self.any();
        let expected = match self.draw(2) {
            0 => Expected::Vacant,
            _ => Expected::VacantForAnyone,
        };
        match self.claim(key, &candidate, expected).await {
            Claimed::Held(row) => {
                // Most who try will find the holder alive.
                let expected = Expected::HeldByDead {
                    session: row.session,
                    epoch: row.epoch,
                };
                yield_now().await;
                self.claim(key, &candidate, expected).await;
            }
            Claimed::Preferred(session) => {
                let mine = self.claim(key, &session, Expected::Vacant).await;
                if let Claimed::CandidateGone = mine {
                    self.claim(key, &candidate, Expected::VacantForAnyone).await;
                }
            }
            Claimed::Placed { .. } | Claimed::CandidateGone => {}
            other => panic!("{RULE}: expected no such answer to a claim: {other:?}"),
        }
    }

    async fn claim(
        &self,
        key: &PlacementKey,
        candidate: &SessionId,
        expected: Expected,
    ) -> Claimed {
        let begun = self.log.begin();
        let asked = Claim {
            key: key.clone(),
            candidate: candidate.clone(),
            expected: expected.clone(),
            above: 0,
        };
        let claimed = self.store.claim(asked).await.holds(RULE);
        match (&claimed, expected) {
            (Claimed::Placed { epoch, replaced }, expected) => {
                let over = match expected {
                    Expected::HeldByDead { epoch, .. } if *replaced => Some(epoch),
                    _ => None,
                };
                assert_eq!(*replaced, over.is_some(), "{RULE}: who was replaced?");
                let (holder, epoch) = (candidate.clone(), *epoch);
                self.of(
                    begun,
                    key,
                    Row::Placed {
                        holder,
                        epoch,
                        over,
                    },
                );
            }
            (Claimed::Held(row), _) => {
                let seen = Some((row.session.clone(), row.epoch));
                self.of(begun, key, Row::Seen(seen));
            }
            (Claimed::Preferred(_), _) => self.of(begun, key, Row::Seen(None)),
            _ => {}
        }
        claimed
    }

    async fn read(&self, key: &PlacementKey) -> Option<(SessionId, u64)> {
        let begun = self.log.begin();
        let row = self.store.row(key).await.holds(RULE);
        let seen = row.map(|row| (row.session, row.epoch));
        self.of(begun, key, Row::Seen(seen.clone()));
        seen
    }

    /// Hands back what it sees: its own, or in the name of another.
    async fn release(&self, key: &PlacementKey) {
        let Some((session, epoch)) = self.read(key).await else {
            return;
        };
        yield_now().await;
        let release = Release {
            session,
            key: key.clone(),
            epoch: Some(epoch),
        };
        let begun = self.log.begin();
        match self.store.release(&[release]).await.holds(RULE) {
            0 => {}
            1 => self.of(begun, key, Row::Released { epoch }),
            freed => panic!("{RULE}: one release of {key:?} freed {freed} rows"),
        }
    }

    async fn fence(&self, key: &PlacementKey) {
        let begun = self.log.begin();
        let fence = Fence {
            starts_in: Duration::ZERO,
            ends_in: Duration::ZERO,
        };
        let fenced = self.store.fence(key, Some(fence)).await.holds(RULE);
        if let Some(row) = fenced {
            let epoch = row.epoch;
            self.of(begun, key, Row::Fenced { epoch });
        }
    }

    async fn lift(&self, key: &PlacementKey) {
        self.store.fence(key, None).await.holds(RULE);
    }

    fn of(&self, begun: u64, key: &PlacementKey, row: Row) {
        self.log.record(begun, Fact::Of(key.clone(), row));
    }
}
