//! The store, as nodes have it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pinned_domain::Domain;
use tokio::sync::mpsc;

use super::state::{Kept, Now, State};
use super::watch::HandleId;
use crate::store::{
    Claim, Claimed, ClientRecord, Drain, EndMode, Event, EventPage, Fence, FencedRow, Heartbeat,
    HeartbeatOutcome, Invalidation, MessageBody, NewSession, PlacementKey, Reclaimed, Registered,
    RegistryStore, Release, Row, SessionChanges, SessionId, StoreError, StoreFuture, StoreOptions,
};

/// How many keys of a list are seen to at a time, before others get their turn.
const CHUNK: usize = 256;

/// A registry store in the memory of this process, for a fleet of one node, and for tests.
///
/// A value is the handle of one node, and so are its clones: invalidations are told to it once. [`node`](Self::node) gives
/// the handle of another node of the same fleet.
///
/// ```
/// # use std::time::Duration;
/// # use pinboard::store::{MemoryStore, RegistryStore as _, StoreOptions};
/// # use pinned_domain::Domain;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), pinboard::store::StoreError> {
/// let options = StoreOptions {
///     lease_ttl: Duration::from_secs(15),
///     quarantine: Duration::from_secs(2),
///     shards: 1,
/// };
/// let store = MemoryStore::new(options, Domain::real());
/// let other_node = store.node();
/// store.prepare().await?;
/// assert!(other_node.quarantine().await?.is_some());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
}

/// Everything that a [`MemoryStore`] had at one time.
#[derive(Clone)]
pub struct MemoryCopy(Kept);

struct Shared {
    domain: Domain,
    state: Mutex<State>,
    handles: AtomicU64,
}

struct Handle {
    id: HandleId,
    listens: AtomicBool,
}

impl MemoryStore {
    /// An empty store, whose clocks are those of `domain`. There is one lock, whatever `options.shards` says.
    #[must_use]
    pub fn new(options: StoreOptions, domain: Domain) -> Self {
        let shared = Shared {
            domain,
            state: Mutex::new(State::new(options)),
            handles: AtomicU64::new(0),
        };
        Self::handle(Arc::new(shared))
    }

    /// The handle of another node.
    #[must_use]
    pub fn node(&self) -> Self {
        Self::handle(Arc::clone(&self.shared))
    }

    fn handle(shared: Arc<Shared>) -> Self {
        let id = HandleId(shared.handles.fetch_add(1, Ordering::Relaxed));
        let listens = AtomicBool::new(false);
        Self {
            shared,
            handle: Arc::new(Handle { id, listens }),
        }
    }

    /// Loses everything, as a store that somebody has emptied.
    pub fn wipe(&self) {
        let now = Now::of(&self.shared.domain);
        self.shared.state.lock().restart(Kept::new(), now);
    }

    /// A copy of everything, to [restart from](Self::restart_from_copy).
    #[must_use]
    pub fn copy(&self) -> MemoryCopy {
        MemoryCopy(self.shared.state.lock().kept.clone())
    }

    /// Goes back to what `copy` has, as a store that was restarted or failed over and has lost its latest writes: a cold
    /// start, on which no session lives (P4.4).
    pub fn restart_from_copy(&self, copy: &MemoryCopy) {
        let now = Now::of(&self.shared.domain);
        self.shared.state.lock().restart(copy.0.clone(), now);
    }

    /// One transition.
    fn at_once<T>(&self, transition: impl FnOnce(&mut State, Now) -> T) -> T {
        let mut state = self.shared.state.lock();
        // Under the lock, so that no operation sees an earlier time than the one before it.
        let now = Now::of(&self.shared.domain);
        state.settle(now);
        transition(&mut state, now)
    }

    /// One transition, as an operation.
    fn op<'a, T: Send + 'a>(
        &'a self,
        transition: impl FnOnce(&mut State, Now) -> T + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move { Ok(self.at_once(transition)) })
    }
}

impl RegistryStore for MemoryStore {
    fn prepare(&self) -> StoreFuture<'_, ()> {
        self.op(|_, _| ())
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        self.op(|_, _| ())
    }

    fn quarantine(&self) -> StoreFuture<'_, Option<Duration>> {
        self.op(|state, now| state.quarantine(now))
    }

    fn extend_quarantine(&self, at_least: Duration) -> StoreFuture<'_, ()> {
        self.op(move |state, now| state.extend_quarantine(at_least, now))
    }

    fn register(&self, session: NewSession) -> StoreFuture<'_, Registered> {
        self.op(move |state, now| state.register(session, now))
    }

    fn reclaim<'a>(
        &'a self,
        session: &'a SessionId,
        previous: &'a [SessionId],
        keys: &'a [PlacementKey],
    ) -> StoreFuture<'a, Vec<Reclaimed>> {
        Box::pin(async move {
            let mut reclaimed = Vec::with_capacity(keys.len());
            for some in keys.chunks(CHUNK) {
                self.at_once(|state, now| -> Result<(), StoreError> {
                    for key in some {
                        reclaimed.push(state.reclaim(session, previous, key, now)?);
                    }
                    Ok(())
                })?;
            }
            Ok(reclaimed)
        })
    }

    fn heartbeat(&self, heartbeat: Heartbeat) -> StoreFuture<'_, HeartbeatOutcome> {
        self.op(move |state, now| state.heartbeat(heartbeat, now))
    }

    fn end_session<'a>(&'a self, session: &'a SessionId, mode: EndMode) -> StoreFuture<'a, bool> {
        self.op(move |state, now| state.end_session(session, mode, now))
    }

    fn client_of<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<String>> {
        self.op(|state, _| state.client_of(session))
    }

    fn sessions_since(&self, version: u64) -> StoreFuture<'_, SessionChanges> {
        self.op(move |state, now| state.sessions_since(version, now))
    }

    fn row<'a>(&'a self, key: &'a PlacementKey) -> StoreFuture<'a, Option<Row>> {
        self.op(|state, now| state.row(key, self.handle.id, now))
    }

    fn claim(&self, claim: Claim) -> StoreFuture<'_, Claimed> {
        let handle = self.handle.id;
        Box::pin(async move { self.at_once(|state, now| state.claim(&claim, handle, now)) })
    }

    fn release<'a>(&'a self, releases: &'a [Release]) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let mut freed = 0;
            for some in releases.chunks(CHUNK) {
                freed += self.at_once(|state, now| {
                    let freed = some.iter().filter(|release| state.release(release, now));
                    freed.count() as u64
                });
            }
            Ok(freed)
        })
    }

    fn fence<'a>(
        &'a self,
        key: &'a PlacementKey,
        fence: Option<Fence>,
    ) -> StoreFuture<'a, Option<FencedRow>> {
        self.op(move |state, now| state.fence(key, fence, now))
    }

    fn held_by<'a>(
        &'a self,
        session: &'a SessionId,
        env: &'a str,
        ns: &'a str,
        cursor: u64,
    ) -> StoreFuture<'a, (Vec<Arc<str>>, u64)> {
        self.op(move |state, _| state.held_by(session, env, ns, cursor))
    }

    fn row_counts(&self) -> StoreFuture<'_, Vec<(Arc<str>, Arc<str>, u64)>> {
        self.op(|state, _| state.kept.rows.counts())
    }

    fn sweep(&self) -> StoreFuture<'_, bool> {
        self.op(State::sweep)
    }

    fn client<'a>(&'a self, client_id: &'a str) -> StoreFuture<'a, Option<ClientRecord>> {
        self.op(|state, now| state.kept.clients.get(client_id, now.at).cloned())
    }

    fn order_drain<'a>(
        &'a self,
        client_id: &'a str,
        drain: Option<Drain>,
    ) -> StoreFuture<'a, bool> {
        self.op(move |state, now| state.order_drain(client_id, drain, now))
    }

    fn queue_messages<'a>(
        &'a self,
        session: &'a SessionId,
        messages: Vec<MessageBody>,
    ) -> StoreFuture<'a, bool> {
        self.op(move |state, now| state.queue_messages(session, messages, now))
    }

    fn append_events(&self, events: Vec<Event>) -> StoreFuture<'_, ()> {
        self.op(move |state, _| state.kept.ring.append(events))
    }

    fn events_after(&self, seq: u64, limit: usize) -> StoreFuture<'_, EventPage> {
        self.op(move |state, _| state.kept.ring.after(seq, limit))
    }

    fn lead<'a>(&'a self, name: &'a str, node: &'a str, ttl: Duration) -> StoreFuture<'a, bool> {
        self.op(move |state, now| state.kept.leases.lead(name, node, ttl, now.at))
    }

    fn stand_down<'a>(&'a self, name: &'a str, node: &'a str) -> StoreFuture<'a, ()> {
        self.op(|state, _| state.kept.leases.stand_down(name, node))
    }

    fn leader<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<(String, Duration)>> {
        self.op(|state, now| state.kept.leases.leader(name, now.at))
    }

    fn invalidations(&self) -> Option<mpsc::Receiver<Invalidation>> {
        let first = !self.handle.listens.swap(true, Ordering::Relaxed);
        first.then(|| self.at_once(|state, _| state.watchers.listen(self.handle.id)))
    }

    fn describe(&self) -> String {
        "memory (this process alone; nothing outlives it)".to_owned()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("handle", &self.handle.id.0)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for MemoryCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCopy").finish_non_exhaustive()
    }
}
