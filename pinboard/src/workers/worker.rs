//! One worker.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use parking_lot::RwLock;
use pinned_domain::Domain;
use pinned_wire::attestation::{Claims, TokenKey};
use tokio::time::Instant;
use url::Url;

use super::token::{TokenCache, header};
use crate::metrics::names::worker_state;
use crate::store::{SessionId, SessionView};
use crate::upstream::{Backend, BackendOptions, Connector};

/// How long after its registration a worker may not have read its session id yet. A request that comes before would be
/// refused, because its attestation is for a session that the worker does not know it has.
const SETTLES_IN: Duration = Duration::from_millis(50);

/// How long a worker that refused an id is not the first choice for others, unless its next heartbeat comes before.
const REFUSAL_COUNTS: Duration = Duration::from_secs(1);

/// One worker session, as this node has last read it: what it said of itself, the connections to it, and its tokens.
///
/// A session has one of these for as long as it lives at the same addresses; when they change, another takes its place and
/// this one is no longer [live](Self::is_live).
pub struct Worker {
    /// Its session.
    pub id: SessionId,
    /// As last read.
    pub view: RwLock<Arc<SessionView>>,
    /// The connections to it.
    pub backend: Backend,
    client_id: Arc<str>,
    addresses: BTreeSet<SocketAddr>,
    domain: Domain,
    tokens: TokenCache,
    /// The session's secret, which it keeps for as long as it lives.
    key: TokenKey,
    /// Zero of the times below.
    base: Instant,
    settled_at: Instant,
    /// When its lease ends, in microseconds since `base`; 0 once the session has ended or another worker stands for it.
    lease_ends: AtomicU64,
    /// When an earlier refusal counts no longer, in microseconds since `base`.
    refusal_ends: AtomicU64,
    /// Whether it takes new ids.
    open: AtomicBool,
    headroom: AtomicU64,
    /// The ids that this node placed, or is placing, since the heartbeat that `headroom` is from.
    promised: AtomicU64,
}

/// What workers of one node have in common.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    pub(super) domain: Domain,
    pub(super) lanes: usize,
    pub(super) lease_ttl: Duration,
    pub(super) connector: Connector,
}

impl Worker {
    /// The worker of a session that was read by a request sent at `read_at`; `None` when its URL cannot be one, which a
    /// registration that was checked rules out.
    pub(super) fn new(
        view: SessionView,
        read_at: Instant,
        surroundings: &Surroundings,
    ) -> Option<Self> {
        let url = Url::parse(&view.record.advertise_url).ok()?;
        let addresses = addresses_of(&view);
        // What is left of its lease tells when it was last heard of, by the store's clock.
        let silent_for = surroundings.lease_ttl.saturating_sub(view.expires_in);
        Some(Self {
            id: view.id.clone(),
            backend: Backend::with_connector(
                BackendOptions {
                    url,
                    addresses: addresses.iter().copied().collect(),
                    lanes: surroundings.lanes,
                    domain: surroundings.domain.clone(),
                },
                surroundings.connector.clone(),
            ),
            client_id: view.record.client_id.as_str().into(),
            addresses,
            domain: surroundings.domain.clone(),
            tokens: TokenCache::default(),
            key: TokenKey::new(view.record.secret.expose()),
            base: read_at,
            settled_at: read_at + SETTLES_IN.saturating_sub(silent_for),
            lease_ends: AtomicU64::new(micros(view.expires_in)),
            refusal_ends: AtomicU64::new(0),
            open: AtomicBool::new(takes_ids(&view)),
            headroom: AtomicU64::new(view.record.update.headroom),
            promised: AtomicU64::new(0),
            view: RwLock::new(Arc::new(view)),
        })
    }

    /// Takes over a newer reading; the caller is the only one who does.
    pub(super) fn update(&self, view: SessionView, read_at: Instant) {
        let lease_ends = read_at + view.expires_in;
        let heard_anew = self.view.read().last_heartbeat_at != view.last_heartbeat_at;
        self.headroom
            .store(view.record.update.headroom, Ordering::Relaxed);
        if heard_anew {
            self.promised.store(0, Ordering::Relaxed);
            self.refusal_ends.store(0, Ordering::Relaxed);
        }
        self.open.store(takes_ids(&view), Ordering::Relaxed);
        *self.view.write() = Arc::new(view);
        self.lease_ends
            .store(self.since_base(lease_ends), Ordering::Release);
    }

    /// Takes over from a worker of the same session that stood at other addresses.
    pub(super) fn succeed(&self, former: &Self) {
        let promised = former.promised.load(Ordering::Relaxed);
        self.promised.store(promised, Ordering::Relaxed);
        former.end();
    }

    /// The session has ended, or another worker stands for it from now on.
    pub(super) fn end(&self) {
        self.open.store(false, Ordering::Relaxed);
        self.lease_ends.store(0, Ordering::Release);
    }

    /// Whether a reading is of the same addresses.
    pub(super) fn stands_at(&self, view: &SessionView) -> bool {
        self.addresses == addresses_of(view)
    }

    /// The worker process.
    #[must_use]
    pub fn client_id(&self) -> &Arc<str> {
        &self.client_id
    }

    /// Whether its lease runs for some time yet, as far as this node knows.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.is_live_at(self.domain.monotonic())
    }

    /// As [`is_live`](Self::is_live), for whoever has just read the clock.
    #[must_use]
    #[inline]
    pub fn is_live_at(&self, now: Instant) -> bool {
        self.since_base(now) < self.lease_ends.load(Ordering::Acquire)
    }

    /// How long its lease runs yet, at least; nothing once it has ended (P4.1).
    #[must_use]
    pub fn lease_left(&self, now: Instant) -> Duration {
        let ends = self.lease_ends.load(Ordering::Acquire);
        Duration::from_micros(ends.saturating_sub(self.since_base(now)))
    }

    /// Whether it takes new ids: it does not drain, is not cordoned, has not been replaced, and its URL answered for it
    /// when last asked. Says nothing of its lease.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Why it takes no new ids, or that it does: one of [`worker_state`].
    #[must_use]
    pub fn state(&self) -> &'static str {
        let view = self.view.read();
        if view.ending {
            worker_state::ENDING
        } else if view.record.update.draining || view.drain.is_some() {
            worker_state::DRAINING
        } else if !view.record.update.reachable {
            worker_state::UNREACHABLE
        } else {
            worker_state::OPEN
        }
    }

    /// What is left of the 50 ms after its registration in which it may not know its session yet.
    #[must_use]
    pub fn settles_in(&self, now: Instant) -> Duration {
        self.settled_at.saturating_duration_since(now)
    }

    /// Free memory in MiB, as of its last heartbeat.
    #[must_use]
    pub fn headroom(&self) -> u64 {
        self.headroom.load(Ordering::Relaxed)
    }

    /// How many ids this node has placed on it, or is placing, since that heartbeat (P4.1).
    #[must_use]
    pub fn promised(&self) -> u64 {
        self.promised.load(Ordering::Relaxed)
    }

    /// Counts an id against its headroom.
    pub(crate) fn promise(self: &Arc<Self>) -> Promise {
        self.promised.fetch_add(1, Ordering::Relaxed);
        Promise {
            worker: Arc::clone(self),
            kept: false,
        }
    }

    /// It refused an id that is new to it, and so may refuse others.
    pub(crate) fn note_refusal(&self) {
        let ends = self.domain.monotonic() + REFUSAL_COUNTS;
        self.refusal_ends
            .store(self.since_base(ends), Ordering::Relaxed);
    }

    /// Whether it has refused an id a moment ago.
    #[must_use]
    pub fn refuses(&self, now: Instant) -> bool {
        self.since_base(now) < self.refusal_ends.load(Ordering::Relaxed)
    }

    /// The store does not place on it any more: no candidate, until it is read anew.
    pub(crate) fn close(&self) {
        self.open.store(false, Ordering::Relaxed);
    }

    /// The token of a request from nobody in particular (P6.1); minted at most once a second, and while one is being minted,
    /// the last one still serves.
    #[must_use]
    pub fn anonymous_token(&self) -> HeaderValue {
        self.with_anonymous_token(self.domain.monotonic(), HeaderValue::clone)
    }

    /// As [`anonymous_token`](Self::anonymous_token), for whoever copies it to another place: nothing that other threads
    /// write is touched. `now` is the monotonic time, and only decides whether the kept token still serves; what a token says
    /// of its time is the wall clock's.
    #[inline]
    pub fn with_anonymous_token<T>(&self, now: Instant, take: impl FnOnce(&HeaderValue) -> T) -> T {
        let mint = || self.token(|claims| claims);
        self.tokens.with(now, mint, take)
    }

    /// The token of a request with claims of its own: a calling instance, an account.
    #[must_use]
    pub fn token(&self, claims: impl FnOnce(Claims) -> Claims) -> HeaderValue {
        let claims = claims(Claims::new(self.id.as_str(), self.domain.now()));
        header(&self.key.mint(&claims))
    }

    #[inline]
    fn since_base(&self, at: Instant) -> u64 {
        micros(at.saturating_duration_since(self.base))
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("id", &self.id)
            .field("client_id", &self.client_id)
            .field("live", &self.is_live())
            .field("open", &self.is_open())
            .field("headroom", &self.headroom())
            .field("promised", &self.promised())
            .finish_non_exhaustive()
    }
}

/// An id that is being placed: it counts against the worker's headroom, and goes on to once it is [kept](Self::keep).
#[derive(Debug)]
pub(crate) struct Promise {
    worker: Arc<Worker>,
    kept: bool,
}

impl Promise {
    pub(crate) fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// The id was placed: it counts until the worker's next heartbeat.
    pub(crate) fn keep(mut self) -> Arc<Worker> {
        self.kept = true;
        Arc::clone(&self.worker)
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let promised = &self.worker.promised;
        // A heartbeat in between has set the count to zero.
        let _ = promised.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |promised| {
            promised.checked_sub(1)
        });
    }
}

fn addresses_of(view: &SessionView) -> BTreeSet<SocketAddr> {
    let record = &view.record;
    let addresses = record.update.moved_to.as_ref();
    addresses
        .unwrap_or(&record.addresses)
        .iter()
        .copied()
        .collect()
}

fn takes_ids(view: &SessionView) -> bool {
    let update = &view.record.update;
    !update.draining && update.reachable && view.drain.is_none() && !view.ending
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
