//! The store in front of another.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use pinned_domain::Domain;
use tokio::sync::mpsc;

use super::faults::{Connection, failed};
use super::{StoreFault, StoreFaults, StoreOp};
use crate::store::{
    Claim, Claimed, ClientRecord, Drain, EndMode, Event, EventPage, Fence, FencedRow, Heartbeat,
    HeartbeatOutcome, Invalidation, MessageBody, NewSession, PlacementKey, Reclaimed, Registered,
    RegistryStore, Release, Row, SessionChanges, SessionId, StoreFuture,
};

/// One node's way to a store, on which calls can fail, take time, and get lost.
///
/// ```
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// # use pinboard::store::{MemoryStore, RegistryStore as _, StoreOptions};
/// # use pinned_domain::Domain;
/// use pinboard::testing::{CutOff, FaultyStore, StoreFault, StoreOp};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let options = StoreOptions {
/// #     lease_ttl: Duration::from_secs(15),
/// #     quarantine: Duration::ZERO,
/// #     shards: 1,
/// # };
/// let memory = MemoryStore::new(options, Domain::real());
/// let (store, faults) = FaultyStore::new(Arc::new(memory), Domain::real());
/// faults.next(StoreOp::Ping, StoreFault::Before);
/// assert!(store.ping().await.is_err());
/// assert!(store.ping().await.is_ok());
/// faults.cut(CutOff::Refused);
/// assert!(store.ping().await.is_err_and(|error| error.is_transient()));
/// assert_eq!(faults.calls(StoreOp::Ping), 3);
/// # }
/// ```
pub struct FaultyStore {
    inner: Arc<dyn RegistryStore>,
    faults: StoreFaults,
}

impl FaultyStore {
    /// A way to `inner`, the handle of one node, and what decides about it.
    #[must_use]
    pub fn new(inner: Arc<dyn RegistryStore>, domain: Domain) -> (Self, StoreFaults) {
        let faults = StoreFaults::new(domain);
        let store = Self {
            inner,
            faults: faults.clone(),
        };
        (store, faults)
    }

    /// Makes one call.
    fn call<'a, T: Send + 'a>(
        &'a self,
        op: StoreOp,
        key: Option<&PlacementKey>,
        inner: impl FnOnce(&'a dyn RegistryStore) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let key = key.cloned();
        Box::pin(async move {
            let fate = self.faults.fate(op, key.as_ref());
            self.faults.travel(fate.there).await?;
            if fate.fault == Some(StoreFault::Before) {
                return Err(failed("the call did not arrive"));
            }
            let answer = inner(&*self.inner).await?;
            self.faults.travel(fate.back).await?;
            match fate.fault {
                Some(StoreFault::Silence) => pending().await,
                Some(_) => Err(failed("the answer was lost")),
                None => Ok(answer),
            }
        })
    }
}

impl RegistryStore for FaultyStore {
    fn prepare(&self) -> StoreFuture<'_, ()> {
        self.call(StoreOp::Prepare, None, |store| store.prepare())
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        self.call(StoreOp::Ping, None, |store| store.ping())
    }

    fn quarantine(&self) -> StoreFuture<'_, Option<Duration>> {
        self.call(StoreOp::Quarantine, None, |store| store.quarantine())
    }

    fn extend_quarantine(&self, at_least: Duration) -> StoreFuture<'_, ()> {
        self.call(StoreOp::ExtendQuarantine, None, move |store| {
            store.extend_quarantine(at_least)
        })
    }

    fn register(&self, session: NewSession) -> StoreFuture<'_, Registered> {
        self.call(StoreOp::Register, None, move |store| {
            store.register(session)
        })
    }

    fn reclaim<'a>(
        &'a self,
        session: &'a SessionId,
        previous: &'a [SessionId],
        keys: &'a [PlacementKey],
    ) -> StoreFuture<'a, Vec<Reclaimed>> {
        self.call(StoreOp::Reclaim, None, move |store| {
            store.reclaim(session, previous, keys)
        })
    }

    fn heartbeat(&self, heartbeat: Heartbeat) -> StoreFuture<'_, HeartbeatOutcome> {
        self.call(StoreOp::Heartbeat, None, move |store| {
            store.heartbeat(heartbeat)
        })
    }

    fn end_session<'a>(&'a self, session: &'a SessionId, mode: EndMode) -> StoreFuture<'a, bool> {
        self.call(StoreOp::EndSession, None, move |store| {
            store.end_session(session, mode)
        })
    }

    fn client_of<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<String>> {
        self.call(StoreOp::ClientOf, None, move |store| {
            store.client_of(session)
        })
    }

    fn sessions_since(&self, version: u64) -> StoreFuture<'_, SessionChanges> {
        self.call(StoreOp::SessionsSince, None, move |store| {
            store.sessions_since(version)
        })
    }

    fn row<'a>(&'a self, key: &'a PlacementKey) -> StoreFuture<'a, Option<Row>> {
        self.call(StoreOp::Row, Some(key), move |store| store.row(key))
    }

    fn claim(&self, claim: Claim) -> StoreFuture<'_, Claimed> {
        let key = claim.key.clone();
        self.call(StoreOp::Claim, Some(&key), move |store| store.claim(claim))
    }

    fn release<'a>(&'a self, releases: &'a [Release]) -> StoreFuture<'a, u64> {
        let key = match releases {
            [release] => Some(&release.key),
            _ => None,
        };
        self.call(StoreOp::Release, key, move |store| store.release(releases))
    }

    fn fence<'a>(
        &'a self,
        key: &'a PlacementKey,
        fence: Option<Fence>,
    ) -> StoreFuture<'a, Option<FencedRow>> {
        self.call(StoreOp::Fence, Some(key), move |store| {
            store.fence(key, fence)
        })
    }

    fn held_by<'a>(
        &'a self,
        session: &'a SessionId,
        env: &'a str,
        ns: &'a str,
        cursor: u64,
    ) -> StoreFuture<'a, (Vec<Arc<str>>, u64)> {
        self.call(StoreOp::HeldBy, None, move |store| {
            store.held_by(session, env, ns, cursor)
        })
    }

    fn row_counts(&self) -> StoreFuture<'_, Vec<(Arc<str>, Arc<str>, u64)>> {
        self.call(StoreOp::RowCounts, None, |store| store.row_counts())
    }

    fn sweep(&self) -> StoreFuture<'_, bool> {
        self.call(StoreOp::Sweep, None, |store| store.sweep())
    }

    fn client<'a>(&'a self, client_id: &'a str) -> StoreFuture<'a, Option<ClientRecord>> {
        self.call(StoreOp::Client, None, move |store| store.client(client_id))
    }

    fn order_drain<'a>(
        &'a self,
        client_id: &'a str,
        drain: Option<Drain>,
    ) -> StoreFuture<'a, bool> {
        self.call(StoreOp::OrderDrain, None, move |store| {
            store.order_drain(client_id, drain)
        })
    }

    fn queue_messages<'a>(
        &'a self,
        session: &'a SessionId,
        messages: Vec<MessageBody>,
    ) -> StoreFuture<'a, bool> {
        self.call(StoreOp::QueueMessages, None, move |store| {
            store.queue_messages(session, messages)
        })
    }

    fn append_events(&self, events: Vec<Event>) -> StoreFuture<'_, ()> {
        self.call(StoreOp::AppendEvents, None, move |store| {
            store.append_events(events)
        })
    }

    fn events_after(&self, seq: u64, limit: usize) -> StoreFuture<'_, EventPage> {
        self.call(StoreOp::EventsAfter, None, move |store| {
            store.events_after(seq, limit)
        })
    }

    fn lead<'a>(&'a self, name: &'a str, node: &'a str, ttl: Duration) -> StoreFuture<'a, bool> {
        self.call(StoreOp::Lead, None, move |store| {
            store.lead(name, node, ttl)
        })
    }

    fn stand_down<'a>(&'a self, name: &'a str, node: &'a str) -> StoreFuture<'a, ()> {
        self.call(StoreOp::StandDown, None, move |store| {
            store.stand_down(name, node)
        })
    }

    fn leader<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<(String, Duration)>> {
        self.call(StoreOp::Leader, None, move |store| store.leader(name))
    }

    fn invalidations(&self) -> Option<mpsc::Receiver<Invalidation>> {
        let from = self.inner.invalidations()?;
        let (to, told) = mpsc::channel(1_024);
        let faults = self.faults.clone();
        let task = forward(from, to, faults.clone());
        faults.domain().spawn(task);
        Some(told)
    }

    fn describe(&self) -> String {
        format!("{}, by way of faults", self.inner.describe())
    }
}

/// Passes invalidations on while the connection is up. The node that reads too slowly makes them wait in `from`, which is
/// bounded in its own way.
async fn forward(
    mut from: mpsc::Receiver<Invalidation>,
    to: mpsc::Sender<Invalidation>,
    faults: StoreFaults,
) {
    let mut connection = faults.connection();
    let mut up = *connection.borrow_and_update() == Connection::Up;
    loop {
        let next = tokio::select! {
            biased;
            () = to.closed() => return,
            changed = connection.changed() => {
                let was = up;
                up = changed.is_ok() && *connection.borrow_and_update() == Connection::Up;
                // Only now: what was known while the store was away is still the best that there is.
                (up && !was).then_some(Invalidation::Everything)
            }
            told = from.recv() => match told {
                Some(told) => up.then_some(told),
                None => return,
            },
        };
        if let Some(next) = next
            && to.send(next).await.is_err()
        {
            return;
        }
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore")
            .field("inner", &self.inner.describe())
            .field("faults", &self.faults)
            .finish()
    }
}
