//! What the checks work with: a fleet, and sessions and keys that nobody else uses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use pinned_domain::{Domain, TaskHandle};
use pinned_wire::registry::{Secret, Takeover};

use super::verdict::{Verdict, same};
use super::{RegistryFleet, RegistryHarness};
use crate::store::{
    Claim, Claimed, EndMode, Expected, Heartbeat, HeartbeatOutcome, NewSession, PlacementKey,
    Registered, RegistryStore, Release, Row, SessionId, SessionRecord, SessionUpdate, StoreOptions,
};

/// How leases run in a scene.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// Nothing expires while the checks run.
    Steady,
    /// Leases are as short as the clock allows; nothing is quarantined.
    Timed,
    /// As [`Pace::Steady`], with a quarantine that is worth waiting for.
    Guarded,
}

/// A fleet under test.
pub(super) struct Scene {
    pub(super) fleet: Box<dyn RegistryFleet>,
    /// The handle of its first node.
    pub(super) store: Arc<dyn RegistryStore>,
    pub(super) domain: Domain,
    pub(super) options: StoreOptions,
    pub(super) virtual_time: bool,
    next: AtomicU64,
}

/// A session that a check has begun.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) session: SessionId,
    pub(super) record: SessionRecord,
}

/// Sends the heartbeats of a session until it is dropped.
pub(super) struct KeptAlive {
    task: TaskHandle<()>,
}

// ===== impl Scene =====

impl Scene {
    pub(super) async fn open(harness: &dyn RegistryHarness, pace: Pace) -> Self {
        let virtual_time = harness.virtual_time();
        let (long, short) = if virtual_time { (60, 15) } else { (60, 3) };
        let moment = Duration::from_millis(20);
        let (lease_ttl, quarantine) = match pace {
            Pace::Steady => (Duration::from_secs(long), moment),
            Pace::Timed => (Duration::from_secs(short), moment),
            Pace::Guarded => (
                Duration::from_secs(long),
                Duration::from_millis(if virtual_time { 15_000 } else { 1_000 }),
            ),
        };
        let options = StoreOptions {
            lease_ttl,
            quarantine,
            shards: 4,
        };
        let fleet = harness.fleet(options).await;
        let store = fleet.node().await;
        let scene = Self {
            fleet,
            store,
            domain: harness.domain(),
            options,
            virtual_time,
            next: AtomicU64::new(0),
        };
        if !matches!(pace, Pace::Guarded) {
            scene.store.prepare().await.holds("P12 (prepare)");
            scene.out_of_quarantine().await;
        }
        scene
    }

    /// The handle of one more node.
    pub(super) async fn node(&self) -> Arc<dyn RegistryStore> {
        self.fleet.node().await
    }

    /// A number that no other call gives.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A namespace that nobody else uses.
    pub(super) fn ns(&self) -> Arc<str> {
        format!("/check-{:06}", self.number()).into()
    }

    /// An id that nobody else uses, in a namespace that nobody else uses.
    pub(super) fn key(&self) -> PlacementKey {
        PlacementKey::single(self.ns(), "blue")
    }

    /// What a worker of `namespaces` says of itself.
    pub(super) fn record(&self, namespaces: &[Arc<str>]) -> SessionRecord {
        let number = self.number();
        let port = 20_000 + u16::try_from(number % 10_000).unwrap_or_default();
        SessionRecord {
            client_id: self.domain.token_hex(16),
            secret: Secret::new(self.domain.token_hex(32)),
            namespaces: namespaces.to_vec(),
            advertise_url: format!("http://127.0.0.1:{port}"),
            addresses: vec![([127, 0, 0, 1], port).into()],
            hostname: PlacementKey::SINGLE.into(),
            env: PlacementKey::SINGLE.into(),
            envs: BTreeMap::new(),
            takeover: Takeover::default(),
            binding_epoch: 0,
            registered_at: self.now_ms(),
            update: update(1024),
        }
    }

    /// Begins a session for `record`.
    pub(super) async fn begin(&self, record: &SessionRecord, rule: &str) -> (Worker, Registered) {
        let worker = Worker {
            session: SessionId::new(self.domain.token_hex(16)),
            record: record.clone(),
        };
        let registered = self.store.register(worker.begin()).await.holds(rule);
        (worker, registered)
    }

    /// A fresh worker of `namespaces`.
    pub(super) async fn worker(&self, namespaces: &[Arc<str>]) -> Worker {
        let record = self.record(namespaces);
        self.begin(&record, "P2.1 (a fresh worker)").await.0
    }

    /// A fresh worker for one key.
    pub(super) async fn worker_of(&self, key: &PlacementKey) -> Worker {
        self.worker(std::slice::from_ref(&key.ns)).await
    }

    /// Registers another process of the same client.
    pub(super) async fn again(&self, worker: &Worker, rule: &str) -> (Worker, Registered) {
        self.begin(&worker.record, rule).await
    }

    pub(super) async fn claim(
        &self,
        key: &PlacementKey,
        candidate: &Worker,
        expected: Expected,
        rule: &str,
    ) -> Claimed {
        self.store
            .claim(claim(key, candidate, expected))
            .await
            .holds(rule)
    }

    /// Places an id that nobody holds; its epoch.
    pub(super) async fn place(&self, key: &PlacementKey, on: &Worker, rule: &str) -> u64 {
        let (epoch, replaced) = self
            .claim(key, on, Expected::Vacant, rule)
            .await
            .placed(rule);
        same(rule, "whether a holder lost it", &replaced, &false);
        epoch
    }

    /// Tries to take an id from the holder that was read.
    pub(super) async fn take(
        &self,
        key: &PlacementKey,
        from: (&Worker, u64),
        to: &Worker,
        rule: &str,
    ) -> Claimed {
        self.claim(key, to, held_by_dead(from.0, from.1), rule)
            .await
    }

    /// The row of an id.
    pub(super) async fn row(&self, key: &PlacementKey, rule: &str) -> Option<Row> {
        self.store.row(key).await.holds(rule)
    }

    /// Holds the row of an id against `expected`: who has it, and under which epoch.
    pub(super) async fn holds_row(
        &self,
        key: &PlacementKey,
        expected: Option<(&Worker, u64)>,
        rule: &str,
    ) {
        let row = self.row(key, rule).await;
        let row = row.map(|row| (row.session, row.epoch));
        let expected = expected.map(|(worker, epoch)| (worker.session.clone(), epoch));
        same(rule, &format!("the row of {key:?}"), &row, &expected);
    }

    /// Frees one row; whether it was there.
    pub(super) async fn free(
        &self,
        key: &PlacementKey,
        holder: &Worker,
        epoch: Option<u64>,
        rule: &str,
    ) -> bool {
        let release = release(key, holder, epoch);
        match self.store.release(&[release]).await.holds(rule) {
            0 => false,
            1 => true,
            freed => panic!("{rule}: one release of {key:?} freed {freed} rows"),
        }
    }

    pub(super) async fn beat(&self, worker: &Worker, rule: &str) -> HeartbeatOutcome {
        self.store.heartbeat(worker.beat()).await.holds(rule)
    }

    /// Whether a session takes heartbeats.
    pub(super) async fn lives(&self, worker: &Worker, rule: &str) -> bool {
        match self.beat(worker, rule).await {
            HeartbeatOutcome::Renewed { .. } => true,
            HeartbeatOutcome::Unknown => false,
            HeartbeatOutcome::Superseded => {
                panic!("{rule}: nobody has displaced {}", worker.session)
            }
        }
    }

    pub(super) async fn end(&self, worker: &Worker, mode: EndMode, rule: &str) -> bool {
        self.store
            .end_session(&worker.session, mode)
            .await
            .holds(rule)
    }

    /// Keeps a session alive from now on.
    pub(super) fn keep_alive(&self, worker: &Worker) -> KeptAlive {
        let (domain, store) = (self.domain.clone(), Arc::clone(&self.store));
        let (worker, pause) = (worker.clone(), self.options.lease_ttl / 6);
        let task = self.domain.spawn(async move {
            while let Ok(HeartbeatOutcome::Renewed { .. }) = store.heartbeat(worker.beat()).await {
                domain.sleep(pause).await;
            }
        });
        KeptAlive { task }
    }

    // --- Time ---

    pub(super) fn now_ms(&self) -> u64 {
        let since = self.domain.now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    pub(super) async fn wait(&self, duration: Duration) {
        self.domain.sleep(duration).await;
    }

    /// Waits until `duration` has surely passed.
    pub(super) async fn wait_out(&self, duration: Duration) {
        let margin = Duration::from_millis(if self.virtual_time { 0 } else { 100 });
        self.wait(duration + margin).await;
    }

    /// Some time that ends surely before `duration` has passed.
    pub(super) fn just_before(&self, duration: Duration) -> Duration {
        if self.virtual_time {
            duration - Duration::from_millis(1)
        } else {
            duration / 2
        }
    }

    /// What `attempt` came to when it took less than `limit`; until it does, it is made again. What a slow machine has
    /// made meaningless counts neither for the store nor against it.
    pub(super) async fn in_time<'a, T>(
        &'a self,
        limit: Duration,
        rule: &str,
        attempt: impl Fn() -> BoxFuture<'a, T> + Send,
    ) -> T {
        for _ in 0..5 {
            let start = self.domain.monotonic();
            let outcome = attempt().await;
            if self.domain.monotonic() - start < limit {
                return outcome;
            }
        }
        panic!("{rule}: five attempts have each taken more than {limit:?}: too slow to tell");
    }

    /// Waits until new ids are placed.
    pub(super) async fn out_of_quarantine(&self) {
        let rule = "P4.4 (the quarantine ends)";
        for _ in 0..50 {
            match self.store.quarantine().await.holds(rule) {
                None => return,
                Some(left) => self.wait_out(left).await,
            }
        }
        panic!("{rule}: it goes on for ever");
    }
}

// ===== impl Worker =====

impl Worker {
    pub(super) fn begin(&self) -> NewSession {
        NewSession {
            id: self.session.clone(),
            record: self.record.clone(),
        }
    }

    /// A heartbeat with nothing new in it.
    pub(super) fn beat(&self) -> Heartbeat {
        Heartbeat {
            session: self.session.clone(),
            update: self.record.update.clone(),
            acks: Vec::new(),
        }
    }
}

impl Drop for KeptAlive {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// ===== values =====

/// What a worker with so much free memory says.
pub(super) fn update(headroom: u64) -> SessionUpdate {
    SessionUpdate {
        headroom,
        draining: false,
        reachable: true,
        moved_to: None,
    }
}

pub(super) fn claim(key: &PlacementKey, candidate: &Worker, expected: Expected) -> Claim {
    Claim {
        key: key.clone(),
        candidate: candidate.session.clone(),
        expected,
        above: 0,
    }
}

pub(super) fn held_by_dead(holder: &Worker, epoch: u64) -> Expected {
    Expected::HeldByDead {
        session: holder.session.clone(),
        epoch,
    }
}

pub(super) fn release(key: &PlacementKey, holder: &Worker, epoch: Option<u64>) -> Release {
    Release {
        session: holder.session.clone(),
        key: key.clone(),
        epoch,
    }
}
