//! The contract of a registry store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::{
    Claim, Claimed, ClientRecord, Drain, EndMode, Event, EventPage, Fence, FencedRow, Heartbeat,
    HeartbeatOutcome, Invalidation, MessageBody, NewSession, PlacementKey, Reclaimed, Registered,
    Release, Row, SessionChanges, SessionId, StoreError,
};

/// What an operation of a store comes to.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// What all nodes of a fleet must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// How long a session lives after its last heartbeat (`PINBOARD_LEASE_TTL_MS`).
    pub lease_ttl: Duration,
    /// How long nothing new is placed on a store that has no boot mark.
    pub quarantine: Duration,
    /// Over how many hash slots the placements are spread (`PINBOARD_SHARDS`).
    pub shards: u16,
}

/// Where the state of a fleet is kept.
///
/// Each operation is atomic per placement row and per session, against those of all other nodes. The invariants that
/// every implementation keeps, and that the suite in `pinboard::testing` checks:
///
/// - A row names at most one session. It changes hands only when nobody holds it, or its holder is dead or past its
///   fence, or the holder itself moves it (P4.2).
/// - A session is *dead* once it has ended by [`EndMode::Now`], or has had no heartbeat for a lease TTL, by the store's own
///   clock. A dead session never lives again.
/// - Every new holder gets an epoch above any that the id ever had: above the store's counter, and no lower than the time in
///   milliseconds, and above [`Claim::above`] (P4.3). Releasing or losing a row never lowers it.
/// - A store that has no boot mark gets one from whatever operation comes first, and claims are refused for
///   [`StoreOptions::quarantine`] from then; [`reclaim`](Self::reclaim) is not. A store that has been restored from a copy, or has lost its latest
///   writes, is such a store, and every session on it is dead (P4.4).
/// - Operations that fail may or may not have happened, and may be repeated.
///
/// # Cancel safety
///
/// An operation whose future is dropped may or may not happen, and leaves nothing behind that the operation itself would
/// not.
pub trait RegistryStore: Send + Sync + 'static {
    /// Makes ready: writes the boot marks that are missing, and tries that a compare-and-set which must fail does fail.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unusable`] when the store does not keep its promises or runs a version that cannot.
    fn prepare(&self) -> StoreFuture<'_, ()>;

    /// Whether it answers.
    ///
    /// # Errors
    ///
    /// It does not.
    fn ping(&self) -> StoreFuture<'_, ()>;

    /// What is left of the quarantine, the longest of all shards; `None` when there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn quarantine(&self) -> StoreFuture<'_, Option<Duration>>;

    /// Sets how much longer nothing new is placed, when that is longer than what stands (P4.4: a dev node that learns that
    /// workers outlived it).
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn extend_quarantine(&self, at_least: Duration) -> StoreFuture<'_, ()>;

    // --- Sessions ---

    /// Begins a session: it lives for a lease TTL from now. An earlier session of the same client takes no more heartbeats
    /// from now on, but holds its rows until it is ended.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn register(&self, session: NewSession) -> StoreFuture<'_, Registered>;

    /// Gives `session` the rows of instances that live in its worker; one answer for each of `keys`, in their order.
    ///
    /// `previous` are sessions of the same worker: rows that they hold move, with their epochs and their fences.
    ///
    /// # Errors
    ///
    /// The store does not answer. Some rows may have moved.
    fn reclaim<'a>(
        &'a self,
        session: &'a SessionId,
        previous: &'a [SessionId],
        keys: &'a [PlacementKey],
    ) -> StoreFuture<'a, Vec<Reclaimed>>;

    /// Renews a session, applies what it says, and drops the control messages that it confirms.
    ///
    /// # Errors
    ///
    /// The store does not answer: the session may live longer than its worker knows, never shorter.
    fn heartbeat(&self, heartbeat: Heartbeat) -> StoreFuture<'_, HeartbeatOutcome>;

    /// Ends a session; whether it lived.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn end_session<'a>(&'a self, session: &'a SessionId, mode: EndMode) -> StoreFuture<'a, bool>;

    /// The client behind a session that lives, or has lived within the last lease TTLs; for checking that a `prevSessionId` is
    /// the client's own. `None` when the store does not know the session.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn client_of<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<String>>;

    /// What has happened to sessions since `version`; the complete list for version 0, and whenever that is easier.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn sessions_since(&self, version: u64) -> StoreFuture<'_, SessionChanges>;

    // --- Placements ---

    /// The row of an id, without placing it; `None` when nobody holds it. Says nothing of whether the holder lives.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn row<'a>(&'a self, key: &'a PlacementKey) -> StoreFuture<'a, Option<Row>>;

    /// Tries to place an id. One round trip.
    ///
    /// # Errors
    ///
    /// The store does not answer; the id may have been placed.
    fn claim(&self, claim: Claim) -> StoreFuture<'_, Claimed>;

    /// Takes rows back from sessions that hold them; how many did (P2.8).
    ///
    /// # Errors
    ///
    /// The store does not answer; some rows may be free.
    fn release<'a>(&'a self, releases: &'a [Release]) -> StoreFuture<'a, u64>;

    /// Fences the row of an id, in place of any fence that stands, or lifts its fence. `None` when nobody holds it.
    ///
    /// # Errors
    ///
    /// The store does not answer; the fence may stand.
    fn fence<'a>(
        &'a self,
        key: &'a PlacementKey,
        fence: Option<Fence>,
    ) -> StoreFuture<'a, Option<FencedRow>>;

    /// Some of the ids of `(env, ns)` that have a row naming `session`; `cursor` 0 begins, and the cursor that comes back 0 ends.
    /// A row that changes meanwhile may or may not be among them, or be there twice.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn held_by<'a>(
        &'a self,
        session: &'a SessionId,
        env: &'a str,
        ns: &'a str,
        cursor: u64,
    ) -> StoreFuture<'a, (Vec<Arc<str>>, u64)>;

    /// How many rows each `(env, ns)` has, those of dead sessions included until they are swept.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    #[allow(clippy::type_complexity, reason = "one answer, read once")]
    fn row_counts(&self) -> StoreFuture<'_, Vec<(Arc<str>, Arc<str>, u64)>>;

    /// Removes some rows of dead sessions; whether there may be more. For one node at a time ([`lead`](Self::lead)), but
    /// harmless from several.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn sweep(&self) -> StoreFuture<'_, bool>;

    // --- Orders ---

    /// What the store remembers of a client.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn client<'a>(&'a self, client_id: &'a str) -> StoreFuture<'a, Option<ClientRecord>>;

    /// Sets or lifts the drain of a client that the store remembers; whether it does.
    ///
    /// # Errors
    ///
    /// The store does not answer; the order may stand.
    fn order_drain<'a>(&'a self, client_id: &'a str, drain: Option<Drain>)
    -> StoreFuture<'a, bool>;

    /// Queues control messages for a session, in place of earlier ones for the same ids; whether the session lives.
    ///
    /// # Errors
    ///
    /// The store does not answer; the message may be queued.
    fn queue_messages<'a>(
        &'a self,
        session: &'a SessionId,
        messages: Vec<MessageBody>,
    ) -> StoreFuture<'a, bool>;

    // --- The fleet ---

    /// Appends to the ring of events, numbering them; the ring keeps the latest thousand.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn append_events(&self, events: Vec<Event>) -> StoreFuture<'_, ()>;

    /// The events after `seq`, at most `limit` of them.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn events_after(&self, seq: u64, limit: usize) -> StoreFuture<'_, EventPage>;

    /// Takes or renews a named lease of the fleet for `node`; whether `node` has it now, for `ttl`.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn lead<'a>(&'a self, name: &'a str, node: &'a str, ttl: Duration) -> StoreFuture<'a, bool>;

    /// Gives such a lease up, if `node` has it.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn stand_down<'a>(&'a self, name: &'a str, node: &'a str) -> StoreFuture<'a, ()>;

    /// Who leads, and for how long yet.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn leader<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<(String, Duration)>>;

    /// Hands over what to forget, of the rows that this handle has read or claimed: `None` when the store cannot tell, and what was
    /// read must not be trusted for longer than a second (P5.7). May be asked for once.
    ///
    /// An invalidation that is received was sent before anything that this handle reads later; a row that is read while its
    /// invalidation is under way must not be remembered.
    fn invalidations(&self) -> Option<mpsc::Receiver<Invalidation>>;

    /// What the start-up block says of the store: its kind and its place, without secrets.
    fn describe(&self) -> String;
}
