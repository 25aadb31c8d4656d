//! The registry store as a node uses it: each operation is timed, and no new epoch is below the floor.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use metrics::{Histogram, histogram};
use pinned_domain::Domain;
use tokio::sync::mpsc;

use crate::metrics::names;
use crate::operators::RoundTrips;
use crate::scanner::EpochFloor;
use crate::store::{
    Claim, Claimed, ClientRecord, Drain, EndMode, Event, EventPage, Fence, FencedRow, Heartbeat,
    HeartbeatOutcome, Invalidation, MessageBody, NewSession, PlacementKey, Reclaimed, Registered,
    RegistryStore, Release, Row, SessionChanges, SessionId, StoreError, StoreFuture,
};

/// The registry store as a node uses it.
pub(super) struct NodeStore {
    store: Arc<dyn RegistryStore>,
    times: Arc<RoundTripTimes>,
    floor: EpochFloor,
    domain: Domain,
}

impl NodeStore {
    /// `is_counted` tells that the store hands its times to the recorder itself.
    pub(super) fn new(
        store: Arc<dyn RegistryStore>,
        is_counted: bool,
        floor: EpochFloor,
        domain: Domain,
    ) -> Self {
        Self {
            store,
            times: Arc::new(RoundTripTimes::new(is_counted)),
            floor,
            domain,
        }
    }

    pub(super) fn times(&self) -> Arc<RoundTripTimes> {
        Arc::clone(&self.times)
    }

    /// Only what comes to an end is timed: one who stops waiting has seen no round trip.
    fn timed<'a, T: Send + 'a>(
        &'a self,
        op: Op,
        run: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        async move {
            let began = self.domain.monotonic();
            let outcome = run.await;
            let took = self.domain.monotonic().saturating_duration_since(began);
            self.times.record(op, took);
            outcome
        }
        .boxed()
    }
}

// --- Times ------------------------------------------------------------------------------------------------------------

/// How long each operation took, since the node started.
pub(super) struct RoundTripTimes {
    ops: [Times; Op::ALL.len()],
}

struct Times {
    count: AtomicU64,
    total_us: AtomicU64,
    longest_us: AtomicU64,
    facade: Histogram,
}

impl RoundTripTimes {
    fn new(is_counted: bool) -> Self {
        let facade = |op: Op| match is_counted {
            true => Histogram::noop(),
            false => histogram!(names::STORE_ROUND_TRIP, "op" => op.name()),
        };
        Self {
            ops: Op::ALL.map(|op| Times {
                count: AtomicU64::new(0),
                total_us: AtomicU64::new(0),
                longest_us: AtomicU64::new(0),
                facade: facade(op),
            }),
        }
    }

    fn record(&self, op: Op, took: Duration) {
        let times = &self.ops[op as usize];
        times.facade.record(took);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        times.total_us.fetch_add(us, Ordering::Relaxed);
        times.longest_us.fetch_max(us, Ordering::Relaxed);
        times.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Of the operations that there were, by their names.
    pub(super) fn read(&self) -> BTreeMap<String, RoundTrips> {
        let ops = Op::ALL.into_iter().zip(&self.ops);
        ops.filter_map(|(op, times)| {
            let count = times.count.load(Ordering::Relaxed);
            let ms = |us: &AtomicU64| us.load(Ordering::Relaxed) as f64 / 1_000.0;
            (count > 0).then(|| {
                let round_trips = RoundTrips {
                    count,
                    mean_ms: ms(&times.total_us) / count as f64,
                    max_ms: ms(&times.longest_us),
                };
                (op.name().to_owned(), round_trips)
            })
        })
        .collect()
    }
}

/// Names the operations, in an order that an array can have.
macro_rules! ops {
    ($($op:ident = $name:literal),+ $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Op { $($op),+ }

        impl Op {
            const ALL: [Self; [$($name),+].len()] = [$(Self::$op),+];

            const fn name(self) -> &'static str {
                match self { $(Self::$op => $name),+ }
            }
        }
    };
}

ops! {
    Prepare = "prepare",
    Ping = "ping",
    Quarantine = "quarantine",
    ExtendQuarantine = "extend_quarantine",
    Register = "register",
    Reclaim = "reclaim",
    Heartbeat = "heartbeat",
    EndSession = "end_session",
    ClientOf = "client_of",
    SessionsSince = "sessions_since",
    Row = "row",
    Claim = "claim",
    Release = "release",
    Fence = "fence",
    HeldBy = "held_by",
    RowCounts = "row_counts",
    Sweep = "sweep",
    Client = "client",
    OrderDrain = "order_drain",
    QueueMessages = "queue_messages",
    AppendEvents = "append_events",
    EventsAfter = "events_after",
    Lead = "lead",
    StandDown = "stand_down",
    Leader = "leader",
}

// --- The store --------------------------------------------------------------------------------------------------------

impl RegistryStore for NodeStore {
    fn prepare(&self) -> StoreFuture<'_, ()> {
        self.timed(Op::Prepare, self.store.prepare())
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        self.timed(Op::Ping, self.store.ping())
    }

    fn quarantine(&self) -> StoreFuture<'_, Option<Duration>> {
        self.timed(Op::Quarantine, self.store.quarantine())
    }

    fn extend_quarantine(&self, at_least: Duration) -> StoreFuture<'_, ()> {
        let run = self.store.extend_quarantine(at_least);
        self.timed(Op::ExtendQuarantine, run)
    }

    fn register(&self, session: NewSession) -> StoreFuture<'_, Registered> {
        self.timed(Op::Register, self.store.register(session))
    }

    fn reclaim<'a>(
        &'a self,
        session: &'a SessionId,
        previous: &'a [SessionId],
        keys: &'a [PlacementKey],
    ) -> StoreFuture<'a, Vec<Reclaimed>> {
        let run = self.store.reclaim(session, previous, keys);
        self.timed(Op::Reclaim, run)
    }

    fn heartbeat(&self, heartbeat: Heartbeat) -> StoreFuture<'_, HeartbeatOutcome> {
        self.timed(Op::Heartbeat, self.store.heartbeat(heartbeat))
    }

    fn end_session<'a>(&'a self, session: &'a SessionId, mode: EndMode) -> StoreFuture<'a, bool> {
        self.timed(Op::EndSession, self.store.end_session(session, mode))
    }

    fn client_of<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<String>> {
        self.timed(Op::ClientOf, self.store.client_of(session))
    }

    fn sessions_since(&self, version: u64) -> StoreFuture<'_, SessionChanges> {
        self.timed(Op::SessionsSince, self.store.sessions_since(version))
    }

    fn row<'a>(&'a self, key: &'a PlacementKey) -> StoreFuture<'a, Option<Row>> {
        self.timed(Op::Row, self.store.row(key))
    }

    fn claim(&self, claim: Claim) -> StoreFuture<'_, Claimed> {
        let above = claim.above.max(self.floor.get());
        let run = self.store.claim(Claim { above, ..claim });
        self.timed(Op::Claim, run)
    }

    fn release<'a>(&'a self, releases: &'a [Release]) -> StoreFuture<'a, u64> {
        self.timed(Op::Release, self.store.release(releases))
    }

    fn fence<'a>(
        &'a self,
        key: &'a PlacementKey,
        fence: Option<Fence>,
    ) -> StoreFuture<'a, Option<FencedRow>> {
        self.timed(Op::Fence, self.store.fence(key, fence))
    }

    fn held_by<'a>(
        &'a self,
        session: &'a SessionId,
        env: &'a str,
        ns: &'a str,
        cursor: u64,
    ) -> StoreFuture<'a, (Vec<Arc<str>>, u64)> {
        let run = self.store.held_by(session, env, ns, cursor);
        self.timed(Op::HeldBy, run)
    }

    fn row_counts(&self) -> StoreFuture<'_, Vec<(Arc<str>, Arc<str>, u64)>> {
        self.timed(Op::RowCounts, self.store.row_counts())
    }

    fn sweep(&self) -> StoreFuture<'_, bool> {
        self.timed(Op::Sweep, self.store.sweep())
    }

    fn client<'a>(&'a self, client_id: &'a str) -> StoreFuture<'a, Option<ClientRecord>> {
        self.timed(Op::Client, self.store.client(client_id))
    }

    fn order_drain<'a>(
        &'a self,
        client_id: &'a str,
        drain: Option<Drain>,
    ) -> StoreFuture<'a, bool> {
        let run = self.store.order_drain(client_id, drain);
        self.timed(Op::OrderDrain, run)
    }

    fn queue_messages<'a>(
        &'a self,
        session: &'a SessionId,
        messages: Vec<MessageBody>,
    ) -> StoreFuture<'a, bool> {
        let run = self.store.queue_messages(session, messages);
        self.timed(Op::QueueMessages, run)
    }

    fn append_events(&self, events: Vec<Event>) -> StoreFuture<'_, ()> {
        self.timed(Op::AppendEvents, self.store.append_events(events))
    }

    fn events_after(&self, seq: u64, limit: usize) -> StoreFuture<'_, EventPage> {
        self.timed(Op::EventsAfter, self.store.events_after(seq, limit))
    }

    fn lead<'a>(&'a self, name: &'a str, node: &'a str, ttl: Duration) -> StoreFuture<'a, bool> {
        self.timed(Op::Lead, self.store.lead(name, node, ttl))
    }

    fn stand_down<'a>(&'a self, name: &'a str, node: &'a str) -> StoreFuture<'a, ()> {
        self.timed(Op::StandDown, self.store.stand_down(name, node))
    }

    fn leader<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<(String, Duration)>> {
        self.timed(Op::Leader, self.store.leader(name))
    }

    fn invalidations(&self) -> Option<mpsc::Receiver<Invalidation>> {
        self.store.invalidations()
    }

    fn describe(&self) -> String {
        self.store.describe()
    }
}
