//! The contract, with a name and a time for each of its operations.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pinned_domain::Domain;
use tokio::sync::mpsc;

use super::RedisUrl;
use super::claims::Claims;
use super::router::Router;
use crate::store::{
    Claim, Claimed, ClientRecord, Drain, EndMode, Event, EventPage, Fence, FencedRow, Heartbeat,
    HeartbeatOutcome, Invalidation, MessageBody, NewSession, PlacementKey, Reclaimed, Registered,
    RegistryStore, Release, Row, SessionChanges, SessionId, StoreError, StoreFuture, StoreOptions,
};

/// How long operations take, with the time that it took to connect (P11).
const ROUND_TRIP: &str = "pinboard_store_round_trip_seconds";

/// A [`RegistryStore`] on Redis 7.0 or later, one server or a cluster, for a fleet of nodes.
///
/// It connects by itself, and again whenever a connection is lost. While a server is away, what needs it fails with
/// [`StoreError::Unavailable`] at once, but for the first half second, in which it waits. No operation waits for longer than a
/// few seconds.
///
/// How the data is laid out is said in the source, at the module `store::redis`.
pub struct RedisStore {
    pub(super) router: Arc<Router>,
    pub(super) claims: Arc<Claims>,
    pub(super) options: StoreOptions,
    url: RedisUrl,
}

impl RedisStore {
    /// A store at `url`, for the runtime that this is called in. It does not wait for a connection;
    /// [`prepare`](RegistryStore::prepare) does.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unusable`] when `url` asks for TLS and this system has no root certificates, or when there is not
    /// one shard.
    pub fn open(
        url: &RedisUrl,
        options: StoreOptions,
        domain: &Domain,
    ) -> Result<Self, StoreError> {
        if options.shards == 0 {
            return Err(StoreError::Unusable("there is not one shard".to_owned()));
        }
        let router = Arc::new(Router::new(url, options, domain)?);
        Ok(Self {
            claims: Claims::new(Arc::clone(&router), options.shards),
            router,
            options,
            url: url.clone(),
        })
    }

    /// Runs an operation, and records how long it took.
    fn timed<'a, T, F>(&'a self, op: &'static str, operation: F) -> StoreFuture<'a, T>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'a,
    {
        Box::pin(async move {
            let domain = self.router.domain();
            let start = domain.monotonic();
            let outcome = operation.await;
            let took = domain.monotonic() - start;
            metrics::histogram!(ROUND_TRIP, "op" => op).record(took.as_secs_f64());
            outcome
        })
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("url", &self.url)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl RegistryStore for RedisStore {
    fn prepare(&self) -> StoreFuture<'_, ()> {
        self.timed("prepare", self.make_ready())
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        self.timed("ping", self.router.ping())
    }

    fn quarantine(&self) -> StoreFuture<'_, Option<Duration>> {
        self.timed("quarantine", self.longest_quarantine(Duration::ZERO))
    }

    fn extend_quarantine(&self, at_least: Duration) -> StoreFuture<'_, ()> {
        self.timed("extend_quarantine", async move {
            self.longest_quarantine(at_least).await.map(drop)
        })
    }

    fn register(&self, session: NewSession) -> StoreFuture<'_, Registered> {
        self.timed("register", self.begin_session(session))
    }

    fn reclaim<'a>(
        &'a self,
        session: &'a SessionId,
        previous: &'a [SessionId],
        keys: &'a [PlacementKey],
    ) -> StoreFuture<'a, Vec<Reclaimed>> {
        self.timed("reclaim", self.reclaim_rows(session, previous, keys))
    }

    fn heartbeat(&self, heartbeat: Heartbeat) -> StoreFuture<'_, HeartbeatOutcome> {
        self.timed("heartbeat", self.renew_session(heartbeat))
    }

    fn end_session<'a>(&'a self, session: &'a SessionId, mode: EndMode) -> StoreFuture<'a, bool> {
        self.timed("end_session", self.finish_session(session, mode))
    }

    fn client_of<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<String>> {
        self.timed("client_of", self.client_of_session(session))
    }

    fn sessions_since(&self, version: u64) -> StoreFuture<'_, SessionChanges> {
        self.timed("sessions_since", self.changes_since(version))
    }

    fn row<'a>(&'a self, key: &'a PlacementKey) -> StoreFuture<'a, Option<Row>> {
        self.timed("row", self.read_row(key))
    }

    fn claim(&self, claim: Claim) -> StoreFuture<'_, Claimed> {
        self.timed("claim", self.claim_row(claim))
    }

    fn release<'a>(&'a self, releases: &'a [Release]) -> StoreFuture<'a, u64> {
        self.timed("release", self.release_rows(releases))
    }

    fn fence<'a>(
        &'a self,
        key: &'a PlacementKey,
        fence: Option<Fence>,
    ) -> StoreFuture<'a, Option<FencedRow>> {
        self.timed("fence", self.fence_row(key, fence))
    }

    fn held_by<'a>(
        &'a self,
        session: &'a SessionId,
        env: &'a str,
        ns: &'a str,
        cursor: u64,
    ) -> StoreFuture<'a, (Vec<Arc<str>>, u64)> {
        self.timed("held_by", self.list_held(session, env, ns, cursor))
    }

    fn row_counts(&self) -> StoreFuture<'_, Vec<(Arc<str>, Arc<str>, u64)>> {
        self.timed("row_counts", self.count_rows())
    }

    fn sweep(&self) -> StoreFuture<'_, bool> {
        self.timed("sweep", self.sweep_rows())
    }

    fn client<'a>(&'a self, client_id: &'a str) -> StoreFuture<'a, Option<ClientRecord>> {
        self.timed("client", self.read_client(client_id))
    }

    fn order_drain<'a>(
        &'a self,
        client_id: &'a str,
        drain: Option<Drain>,
    ) -> StoreFuture<'a, bool> {
        self.timed("order_drain", self.set_drain(client_id, drain))
    }

    fn queue_messages<'a>(
        &'a self,
        session: &'a SessionId,
        messages: Vec<MessageBody>,
    ) -> StoreFuture<'a, bool> {
        self.timed("queue_messages", self.queue(session, messages))
    }

    fn append_events(&self, events: Vec<Event>) -> StoreFuture<'_, ()> {
        self.timed("append_events", self.append(events))
    }

    fn events_after(&self, seq: u64, limit: usize) -> StoreFuture<'_, EventPage> {
        self.timed("events_after", self.events(seq, limit))
    }

    fn lead<'a>(&'a self, name: &'a str, node: &'a str, ttl: Duration) -> StoreFuture<'a, bool> {
        self.timed("lead", self.take_lead(name, node, ttl))
    }

    fn stand_down<'a>(&'a self, name: &'a str, node: &'a str) -> StoreFuture<'a, ()> {
        self.timed("stand_down", self.give_up_lead(name, node))
    }

    fn leader<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<(String, Duration)>> {
        self.timed("leader", self.read_leader(name))
    }

    fn invalidations(&self) -> Option<mpsc::Receiver<Invalidation>> {
        self.router.invalidations().receiver()
    }

    fn describe(&self) -> String {
        let kind = if self.url.cluster {
            "Redis Cluster"
        } else {
            "Redis"
        };
        format!("{kind} at {}, {} shards", self.url, self.options.shards)
    }
}
