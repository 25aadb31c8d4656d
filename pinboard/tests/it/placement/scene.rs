//! A fleet for tests: a store in memory, nodes on it, and workers that are nothing but their sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use pinboard::events::Events;
use pinboard::metrics::{Resolution, ResolutionCounts};
use pinboard::placement::{NotPlaced, Placed, Placement};
use pinboard::settings::Settings;
use pinboard::store::*;
use pinboard::workers::Workers;
use pinned_domain::{Domain, TaskHandle};
use pinned_testing::sim::Sim;
use pinned_wire::registry::{Secret, Takeover};

use super::spy::Spy;

pub(crate) const NS: &str = "/rooms";

/// The lease TTL of a fleet for tests.
pub(crate) const TTL: Duration = Duration::from_secs(15);

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs a test in virtual time.
pub(crate) fn simulate<F, Fut>(test: F)
where
    F: FnOnce(Sim) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    Sim::run(7, test);
}

pub(crate) fn key(id: &str) -> PlacementKey {
    PlacementKey::single(NS, id)
}

/// A fleet without a quarantine.
pub(crate) struct Fleet {
    pub(crate) domain: Domain,
    store: MemoryStore,
    next_port: AtomicU16,
}

/// One node of it.
pub(crate) struct Node {
    pub(crate) store: Arc<Spy>,
    pub(crate) workers: Workers,
    pub(crate) events: Events,
    pub(crate) placement: Placement,
    pub(crate) domain: Domain,
    listening: Option<TaskHandle<()>>,
}

/// A worker: its session, and what it says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) record: SessionRecord,
}

impl Fleet {
    pub(crate) async fn new(domain: Domain) -> Self {
        let fleet = Self::quarantined(domain.clone(), ms(1));
        fleet.store.prepare().await.expect("prepares");
        domain.sleep(ms(5)).await;
        fleet
    }

    /// One that places nothing for `quarantine` from its first operation on.
    pub(crate) fn quarantined(domain: Domain, quarantine: Duration) -> Self {
        let options = StoreOptions {
            lease_ttl: TTL,
            quarantine,
            shards: 16,
        };
        Self {
            store: MemoryStore::new(options, domain.clone()),
            domain,
            next_port: AtomicU16::new(9_000),
        }
    }

    /// What the fleet itself does to the store, beside what its nodes do.
    pub(crate) fn store(&self) -> &dyn RegistryStore {
        &self.store
    }

    /// Has the store lose everything.
    pub(crate) fn wipe(&self) {
        self.store.wipe();
    }

    /// Has the store go back to what it has now while `meanwhile` runs, as a replica that was behind.
    pub(crate) async fn go_back(&self, meanwhile: impl Future<Output = ()>) {
        let copy = self.store.copy();
        meanwhile.await;
        self.store.restart_from_copy(&copy);
    }

    pub(crate) fn handle(&self) -> Arc<dyn RegistryStore> {
        Arc::new(self.store.node())
    }

    /// A node that has read the sessions, and listens to what changes.
    pub(crate) async fn node(&self) -> Node {
        let mut node = Node::new(Spy::new(self.handle()), &self.domain, settings());
        node.listen();
        node.read().await;
        // The listener begins to listen.
        self.domain.sleep(ms(1)).await;
        node
    }

    /// A node whose store does not tell what changes.
    pub(crate) async fn silent_node(&self) -> Node {
        let mut node = Node::new(Spy::silent(self.handle()), &self.domain, settings());
        node.listen();
        node.read().await;
        node
    }

    /// A worker of [`NS`] that registered a while ago.
    pub(crate) async fn worker(&self, name: &str) -> Session {
        self.worker_with(name, 1_024).await
    }

    pub(crate) async fn worker_with(&self, name: &str, headroom: u64) -> Session {
        let worker = self.fresh_worker(name, headroom).await;
        self.domain.sleep(ms(60)).await;
        worker
    }

    /// A worker that has just registered.
    pub(crate) async fn fresh_worker(&self, name: &str, headroom: u64) -> Session {
        let session = self.session(name, headroom);
        self.register(&session).await;
        session
    }

    /// What a worker would say of itself.
    pub(crate) fn session(&self, name: &str, headroom: u64) -> Session {
        let port = self.next_port.fetch_add(1, Ordering::Relaxed);
        Session {
            id: SessionId::new(format!("session-{name}")),
            record: SessionRecord {
                client_id: format!("client-{name}"),
                secret: Secret::new("0f1e2d"),
                namespaces: vec![NS.into()],
                advertise_url: format!("http://127.0.0.1:{port}"),
                addresses: vec![([127, 0, 0, 1], port).into()],
                hostname: "*".into(),
                env: "*".into(),
                envs: BTreeMap::new(),
                takeover: Takeover::default(),
                binding_epoch: 0,
                registered_at: 1_800_000_000_000,
                update: SessionUpdate {
                    headroom,
                    draining: false,
                    reachable: true,
                    moved_to: None,
                },
            },
        }
    }

    pub(crate) async fn register(&self, session: &Session) -> Registered {
        let new = NewSession {
            id: session.id.clone(),
            record: session.record.clone(),
        };
        self.store.register(new).await.expect("registers")
    }

    /// A heartbeat that says what the record of `session` says now.
    pub(crate) async fn beat(&self, session: &Session) {
        let heartbeat = Heartbeat {
            session: session.id.clone(),
            update: session.record.update.clone(),
            acks: Vec::new(),
        };
        let outcome = self.store.heartbeat(heartbeat).await.expect("answers");
        assert!(
            matches!(outcome, HeartbeatOutcome::Renewed { .. }),
            "{} lives: {outcome:?}",
            session.id
        );
    }

    /// Beats every three seconds from now on.
    pub(crate) fn keep_alive(self: &Arc<Self>, session: &Session) -> TaskHandle<()> {
        let (fleet, session) = (Arc::clone(self), session.clone());
        self.domain.spawn(async move {
            loop {
                fleet.beat(&session).await;
                fleet.domain.sleep(3 * SECOND).await;
            }
        })
    }

    pub(crate) async fn end(&self, session: &Session, mode: EndMode) {
        let lived = self.store.end_session(&session.id, mode).await;
        assert!(lived.expect("answers"), "{} lived", session.id);
    }

    pub(crate) async fn row(&self, key: &PlacementKey) -> Option<Row> {
        self.store.row(key).await.expect("answers")
    }

    /// Frees a row, as its holder would.
    pub(crate) async fn release(&self, placed: &Placed) {
        let release = Release {
            session: placed.worker.id.clone(),
            key: placed.key.clone(),
            epoch: Some(placed.epoch),
        };
        assert_eq!(self.store.release(&[release]).await.expect("answers"), 1);
    }
}

impl Node {
    pub(crate) fn new(store: Spy, domain: &Domain, settings: Settings) -> Self {
        let store = Arc::new(store);
        let shared: Arc<dyn RegistryStore> = Arc::clone(&store) as _;
        let events = Events::new();
        let workers = Workers::new(Arc::clone(&shared), domain.clone(), &settings);
        let placement = Placement::new(
            shared,
            workers.clone(),
            events.clone(),
            domain.clone(),
            &settings,
        );
        Self {
            store,
            workers,
            events,
            placement,
            domain: domain.clone(),
            listening: None,
        }
    }

    pub(crate) fn listen(&mut self) {
        let placement = self.placement.clone();
        let listening = self.domain.spawn(async move {
            let _ = placement.run().await;
        });
        self.listening = Some(listening);
    }

    pub(crate) fn stop_listening(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
    }

    /// Reads the sessions as a node does, from now on.
    pub(crate) fn keep_reading(&self) -> TaskHandle<()> {
        let workers = self.workers.clone();
        self.domain.spawn(async move {
            let _ = workers.run().await;
        })
    }

    /// Reads the sessions now.
    pub(crate) async fn read(&self) {
        self.workers.refresh_now().await.expect("the store answers");
    }

    pub(crate) async fn resolve(&self, id: &str) -> Result<Arc<Placed>, NotPlaced> {
        self.placement.resolve(&key(id)).await
    }

    pub(crate) fn known(&self, id: &str) -> Option<Arc<Placed>> {
        self.placement.known("*", NS, id)
    }

    /// Resolves an id on a task of its own.
    pub(crate) fn resolving(&self, id: &str) -> TaskHandle<Result<Arc<Placed>, NotPlaced>> {
        let (placement, key) = (self.placement.clone(), key(id));
        self.domain
            .spawn(async move { placement.resolve(&key).await })
    }

    pub(crate) fn resolved(&self, resolution: Resolution) -> u64 {
        let counts: ResolutionCounts = self.placement.resolutions();
        counts.of(resolution)
    }

    /// The kinds of events that were recorded since the last look.
    pub(crate) fn told(&self) -> Vec<EventKind> {
        self.events.take().iter().map(|event| event.kind).collect()
    }
}

pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.lease_ttl = TTL;
    settings
}

/// The session that holds it.
pub(crate) fn holder(placed: &Placed) -> &str {
    placed.worker.id.as_str()
}
