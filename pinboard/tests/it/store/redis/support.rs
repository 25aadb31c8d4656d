//! What these tests share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pinboard::store::{
    Claim, Claimed, Expected, Heartbeat, HeartbeatOutcome, NewSession, PlacementKey, RedisStore,
    RedisUrl, RegistryStore, SessionId, SessionRecord, SessionUpdate, StoreError, StoreOptions,
};
use pinned_domain::Domain;
use pinned_testing::RedisServer;
use pinned_wire::registry::{Secret, Takeover};

/// What most tests are content with: leases that do not run out, and no quarantine to speak of.
pub(super) const STEADY: StoreOptions = StoreOptions {
    lease_ttl: Duration::from_secs(60),
    quarantine: Duration::from_millis(20),
    shards: 4,
};

/// How long what happens by itself may take on a busy machine.
pub(super) const SOON: Duration = Duration::from_secs(20);

pub(super) fn url(text: &str) -> RedisUrl {
    text.parse().expect("it is a URL of Redis")
}

pub(super) fn open(text: &str, options: StoreOptions) -> Arc<RedisStore> {
    let store = RedisStore::open(&url(text), options, &Domain::real());
    Arc::new(store.expect("it needs no certificates"))
}

/// A store that is ready, and places ids.
pub(super) async fn ready(text: &str, options: StoreOptions) -> Arc<RedisStore> {
    let store = open(text, options);
    store.prepare().await.expect("it is there");
    while let Some(left) = store.quarantine().await.expect("it answers") {
        pause(left).await;
    }
    store
}

pub(super) async fn pause(duration: Duration) {
    Domain::real().sleep(duration).await;
}

/// Waits until `done` says so.
pub(super) async fn until<F: Future<Output = bool>>(what: &str, mut done: impl FnMut() -> F) {
    let domain = Domain::real();
    let start = domain.monotonic();
    while !done().await {
        assert!(domain.monotonic() - start < SOON, "{what} does not come");
        domain.sleep(Duration::from_millis(20)).await;
    }
}

pub(super) fn update() -> SessionUpdate {
    SessionUpdate {
        headroom: 512,
        draining: false,
        reachable: true,
        moved_to: None,
    }
}

pub(super) fn record(client_id: &str, namespaces: &[&str]) -> SessionRecord {
    SessionRecord {
        client_id: client_id.to_owned(),
        secret: Secret::new("the secret of a worker"),
        namespaces: namespaces.iter().map(|ns| Arc::from(*ns)).collect(),
        advertise_url: "http://127.0.0.1:9".to_owned(),
        addresses: vec![([127, 0, 0, 1], 9).into()],
        hostname: PlacementKey::SINGLE.into(),
        env: PlacementKey::SINGLE.into(),
        envs: BTreeMap::new(),
        takeover: Takeover::default(),
        binding_epoch: 0,
        registered_at: 1,
        update: update(),
    }
}

pub(super) fn new_session(client_id: &str) -> NewSession {
    NewSession {
        id: SessionId::new(Domain::real().token_hex(16)),
        record: record(client_id, &["/ns"]),
    }
}

/// A session of a client of its own.
pub(super) async fn worker(store: &RedisStore) -> SessionId {
    worker_of(store, &Domain::real().token_hex(16)).await
}

/// A session of a client.
pub(super) async fn worker_of(store: &RedisStore, client_id: &str) -> SessionId {
    let session = new_session(client_id);
    let id = session.id.clone();
    store.register(session).await.expect("it registers");
    id
}

pub(super) fn beat(session: &SessionId) -> Heartbeat {
    Heartbeat {
        session: session.clone(),
        update: update(),
        acks: Vec::new(),
    }
}

/// Whether a session takes heartbeats.
pub(super) async fn lives(store: &RedisStore, session: &SessionId) -> Result<bool, StoreError> {
    let outcome = store.heartbeat(beat(session)).await?;
    Ok(matches!(outcome, HeartbeatOutcome::Renewed { .. }))
}

pub(super) fn key(id: &str) -> PlacementKey {
    PlacementKey::single("/ns", id)
}

pub(super) fn claim(key: &PlacementKey, candidate: &SessionId, expected: Expected) -> Claim {
    Claim {
        key: key.clone(),
        candidate: candidate.clone(),
        expected,
        above: 0,
    }
}

pub(super) async fn try_place(
    store: &RedisStore,
    key: &PlacementKey,
    on: &SessionId,
) -> Result<Claimed, StoreError> {
    store.claim(claim(key, on, Expected::Vacant)).await
}

/// Places an id that nobody holds; its epoch.
pub(super) async fn place(store: &RedisStore, key: &PlacementKey, on: &SessionId) -> u64 {
    match try_place(store, key, on).await {
        Ok(Claimed::Placed { epoch, .. }) => epoch,
        other => panic!("{key:?} is not placed: {other:?}"),
    }
}

/// The holder of an id, and its epoch.
pub(super) async fn holder(store: &RedisStore, key: &PlacementKey) -> Option<(SessionId, u64)> {
    let row = store.row(key).await.expect("it answers");
    row.map(|row| (row.session, row.epoch))
}

/// A field of `INFO`.
pub(super) async fn info(server: &RedisServer, section: &str, field: &str) -> String {
    let info = server.cli(&["INFO", section]).await;
    let value = info.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name == field).then(|| value.trim().to_owned())
    });
    value.unwrap_or_default()
}
