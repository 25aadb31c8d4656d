//! A store that counts what it is asked, can be held before and after an operation, and can fail.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pinboard::store::*;
use pinned_domain::Domain;
use pinned_testing::Gate;
use tokio::sync::mpsc;

/// Where an operation is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hold {
    /// It has not happened yet.
    Before,
    /// It has happened, and its answer is under way.
    After,
}

pub(crate) struct Spy {
    inner: Arc<dyn RegistryStore>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    gates: Mutex<BTreeMap<(&'static str, Hold), Gate>>,
    away: AtomicBool,
    delays: Option<(Domain, Duration)>,
    tells: bool,
    told: Mutex<Option<mpsc::Sender<Invalidation>>>,
}

impl Spy {
    /// A store that tells of changes where `inner` does.
    pub(crate) fn new(inner: Arc<dyn RegistryStore>) -> Self {
        Self {
            inner,
            counts: Mutex::default(),
            gates: Mutex::default(),
            away: AtomicBool::new(false),
            delays: None,
            tells: true,
            told: Mutex::default(),
        }
    }

    /// One that never does.
    pub(crate) fn silent(inner: Arc<dyn RegistryStore>) -> Self {
        Self {
            tells: false,
            ..Self::new(inner)
        }
    }

    /// One at the end of a network: each way takes some time, up to `at_most`.
    pub(crate) fn distant(
        inner: Arc<dyn RegistryStore>,
        domain: Domain,
        at_most: Duration,
    ) -> Self {
        Self {
            delays: Some((domain, at_most)),
            ..Self::new(inner)
        }
    }

    async fn travel(&self) {
        if let Some((domain, at_most)) = &self.delays {
            let rng = domain.rng("network").expect("a label");
            let part = rng.uniform(0.0..1.0);
            domain.sleep(at_most.mul_f64(part)).await;
        }
    }

    /// Has every operation fail from now on, or no longer.
    pub(crate) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
    }

    /// Holds operations called `op` until the gate is opened.
    pub(crate) fn hold(&self, op: &'static str, hold: Hold) -> Gate {
        let gate = Gate::new();
        self.gates.lock().insert((op, hold), gate.clone());
        gate
    }

    /// Lets all through again.
    pub(crate) fn release_holds(&self) {
        for (_, gate) in std::mem::take(&mut *self.gates.lock()) {
            gate.open();
        }
    }

    /// How often `op` was asked for.
    pub(crate) fn count(&self, op: &'static str) -> u64 {
        self.counts.lock().get(op).copied().unwrap_or(0)
    }

    /// How often rows were read or set.
    pub(crate) fn round_trips(&self) -> u64 {
        self.count("claim") + self.count("row") + self.count("release")
    }

    pub(crate) fn forget_counts(&self) {
        self.counts.lock().clear();
    }

    /// Tells what to forget, beside what the store tells.
    pub(crate) async fn tell(&self, invalidation: Invalidation) {
        let told = self.told.lock().clone().expect("somebody asked for them");
        told.send(invalidation).await.expect("somebody listens");
    }

    fn run<'a, T: Send + 'a>(
        &'a self,
        op: &'static str,
        operation: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        *self.counts.lock().entry(op).or_default() += 1;
        let gate = |hold| self.gates.lock().get(&(op, hold)).cloned();
        let (before, after) = (gate(Hold::Before), gate(Hold::After));
        Box::pin(async move {
            if let Some(gate) = before {
                gate.pass().await;
            }
            self.travel().await;
            if self.away.load(Ordering::Relaxed) {
                return Err(lost());
            }
            let answer = operation.await;
            self.travel().await;
            if self.away.load(Ordering::Relaxed) {
                return Err(lost());
            }
            if let Some(gate) = after {
                gate.pass().await;
            }
            answer
        })
    }
}

fn lost() -> StoreError {
    StoreError::unavailable(io::Error::from(io::ErrorKind::ConnectionReset))
}

impl RegistryStore for Spy {
    fn prepare(&self) -> StoreFuture<'_, ()> {
        self.run("prepare", self.inner.prepare())
    }
    fn ping(&self) -> StoreFuture<'_, ()> {
        self.run("ping", self.inner.ping())
    }
    fn quarantine(&self) -> StoreFuture<'_, Option<Duration>> {
        self.run("quarantine", self.inner.quarantine())
    }
    fn extend_quarantine(&self, at_least: Duration) -> StoreFuture<'_, ()> {
        self.run("extend_quarantine", self.inner.extend_quarantine(at_least))
    }
    fn register(&self, session: NewSession) -> StoreFuture<'_, Registered> {
        self.run("register", self.inner.register(session))
    }
    fn reclaim<'a>(
        &'a self,
        session: &'a SessionId,
        previous: &'a [SessionId],
        keys: &'a [PlacementKey],
    ) -> StoreFuture<'a, Vec<Reclaimed>> {
        self.run("reclaim", self.inner.reclaim(session, previous, keys))
    }
    fn heartbeat(&self, heartbeat: Heartbeat) -> StoreFuture<'_, HeartbeatOutcome> {
        self.run("heartbeat", self.inner.heartbeat(heartbeat))
    }
    fn end_session<'a>(&'a self, session: &'a SessionId, mode: EndMode) -> StoreFuture<'a, bool> {
        self.run("end_session", self.inner.end_session(session, mode))
    }
    fn client_of<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<String>> {
        self.run("client_of", self.inner.client_of(session))
    }
    fn sessions_since(&self, version: u64) -> StoreFuture<'_, SessionChanges> {
        self.run("sessions_since", self.inner.sessions_since(version))
    }
    fn row<'a>(&'a self, key: &'a PlacementKey) -> StoreFuture<'a, Option<Row>> {
        self.run("row", self.inner.row(key))
    }
    fn claim(&self, claim: Claim) -> StoreFuture<'_, Claimed> {
        self.run("claim", self.inner.claim(claim))
    }
    fn release<'a>(&'a self, releases: &'a [Release]) -> StoreFuture<'a, u64> {
        self.run("release", self.inner.release(releases))
    }
    fn fence<'a>(
        &'a self,
        key: &'a PlacementKey,
        fence: Option<Fence>,
    ) -> StoreFuture<'a, Option<FencedRow>> {
        self.run("fence", self.inner.fence(key, fence))
    }
    fn held_by<'a>(
        &'a self,
        session: &'a SessionId,
        env: &'a str,
        ns: &'a str,
        cursor: u64,
    ) -> StoreFuture<'a, (Vec<Arc<str>>, u64)> {
        self.run("held_by", self.inner.held_by(session, env, ns, cursor))
    }
    fn row_counts(&self) -> StoreFuture<'_, Vec<(Arc<str>, Arc<str>, u64)>> {
        self.run("row_counts", self.inner.row_counts())
    }
    fn sweep(&self) -> StoreFuture<'_, bool> {
        self.run("sweep", self.inner.sweep())
    }
    fn client<'a>(&'a self, client_id: &'a str) -> StoreFuture<'a, Option<ClientRecord>> {
        self.run("client", self.inner.client(client_id))
    }
    fn order_drain<'a>(
        &'a self,
        client_id: &'a str,
        drain: Option<Drain>,
    ) -> StoreFuture<'a, bool> {
        self.run("order_drain", self.inner.order_drain(client_id, drain))
    }
    fn queue_messages<'a>(
        &'a self,
        session: &'a SessionId,
        messages: Vec<MessageBody>,
    ) -> StoreFuture<'a, bool> {
        self.run(
            "queue_messages",
            self.inner.queue_messages(session, messages),
        )
    }
    fn append_events(&self, events: Vec<Event>) -> StoreFuture<'_, ()> {
        self.run("append_events", self.inner.append_events(events))
    }
    fn events_after(&self, seq: u64, limit: usize) -> StoreFuture<'_, EventPage> {
        self.run("events_after", self.inner.events_after(seq, limit))
    }
    fn lead<'a>(&'a self, name: &'a str, node: &'a str, ttl: Duration) -> StoreFuture<'a, bool> {
        self.run("lead", self.inner.lead(name, node, ttl))
    }
    fn stand_down<'a>(&'a self, name: &'a str, node: &'a str) -> StoreFuture<'a, ()> {
        self.run("stand_down", self.inner.stand_down(name, node))
    }
    fn leader<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<(String, Duration)>> {
        self.run("leader", self.inner.leader(name))
    }
    fn invalidations(&self) -> Option<mpsc::Receiver<Invalidation>> {
        if !self.tells {
            return None;
        }
        let mut inner = self.inner.invalidations()?;
        let (sender, receiver) = mpsc::channel(1_024);
        *self.told.lock() = Some(sender.clone());
        // Forwarding needs no clock, so that it may be a task of the runtime itself.
        tokio::runtime::Handle::current().spawn(async move {
            while let Some(invalidation) = inner.recv().await {
                if sender.send(invalidation).await.is_err() {
                    break;
                }
            }
        });
        Some(receiver)
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
}
