//! The live sessions.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use metrics::{Gauge, gauge};
use parking_lot::Mutex;
use pinned_domain::Domain;
use tokio::sync::broadcast;

use super::refresh::{Applied, Ended, Refreshes};
use super::snapshot::Snapshot;
use super::worker::Surroundings;
use super::{Namespace, Worker, WorkerChange};
use crate::metrics::names::{self, worker_state};
use crate::settings::Settings;
use crate::store::{RegistryStore, SessionId};
use crate::upstream::Connector;

/// How many changes wait for a slow subscriber.
const CHANGES: usize = 1_024;

/// However short the intervals are that a node is told, it does not read without a pause.
pub(super) const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// The sessions could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sessions could not be read from the registry store")]
pub struct NotRefreshed;

/// How many live sessions there are, by whether they take new ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// They take new ids.
    pub open: usize,
    /// They drain, or an operator drains or cordons them.
    pub draining: usize,
    /// Their URL did not answer for them when last asked.
    pub unreachable: usize,
    /// They have been replaced, and their leases run out.
    pub ending: usize,
}

/// The live sessions, as this node has last read them. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Workers {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) store: Arc<dyn RegistryStore>,
    pub(super) surroundings: Surroundings,
    pub(super) snapshot: ArcSwap<Snapshot>,
    pub(super) refreshes: Refreshes,
    pub(super) applied: Mutex<Applied>,
    pub(super) ended: Ended,
    pub(super) changes: broadcast::Sender<WorkerChange>,
    /// Whether the store answered when it was last asked.
    pub(super) answers: AtomicBool,
    refresh_every: Duration,
    gauges: Gauges,
}

struct Gauges {
    open: Gauge,
    draining: Gauge,
    unreachable: Gauge,
    ending: Gauge,
}

impl Workers {
    /// No workers yet: the first [`refresh_now`](Self::refresh_now) reads them.
    #[must_use]
    pub fn new(store: Arc<dyn RegistryStore>, domain: Domain, settings: &Settings) -> Self {
        Self::with_connector(store, domain, settings, Connector::default())
    }

    /// As [`new`](Self::new), with workers that are reached over connections of `connector`.
    #[must_use]
    pub fn with_connector(
        store: Arc<dyn RegistryStore>,
        domain: Domain,
        settings: &Settings,
        connector: Connector,
    ) -> Self {
        // A lease that ends between two readings would make every worker look dead for a while.
        let refresh_every = settings.sweep_interval.min(settings.lease_ttl / 4);
        let refresh_every = refresh_every.max(SHORTEST_PAUSE);
        let gauge = |state| gauge!(names::WORKERS, "state" => state);
        Self {
            inner: Arc::new(Inner {
                store,
                surroundings: Surroundings {
                    domain,
                    lanes: settings.lanes,
                    lease_ttl: settings.lease_ttl,
                    connector,
                },
                snapshot: ArcSwap::default(),
                refreshes: Refreshes::new(),
                applied: Mutex::default(),
                ended: Ended::new(),
                changes: broadcast::Sender::new(CHANGES),
                answers: AtomicBool::new(false),
                refresh_every,
                gauges: Gauges {
                    open: gauge(worker_state::OPEN),
                    draining: gauge(worker_state::DRAINING),
                    unreachable: gauge(worker_state::UNREACHABLE),
                    ending: gauge(worker_state::ENDING),
                },
            }),
        }
    }

    /// Reads the sessions every sweep interval (and at least four times a lease TTL), for as long as it is polled.
    ///
    /// # Cancel safety
    ///
    /// A reading that is under way goes on.
    pub async fn run(&self) -> Infallible {
        let domain = &self.inner.surroundings.domain;
        loop {
            let next = domain.sleep(self.inner.refresh_every);
            // Whether it succeeded is told where it is read.
            let _ = self.refresh_now().await;
            self.inner.gauges.set(self.counts());
            next.await;
        }
    }

    /// Reads the sessions anew, by a reading that begins after this call: what happened before it is known after. However
    /// many call at once, they share one.
    ///
    /// # Errors
    ///
    /// The store did not answer. What was known stays.
    ///
    /// # Cancel safety
    ///
    /// The reading goes on.
    pub async fn refresh_now(&self) -> Result<(), NotRefreshed> {
        Inner::refresh(&self.inner).await
    }

    /// As [`refresh_now`](Self::refresh_now), unless the latest reading began less than `age` ago: for answers that strangers
    /// can ask for as often as they like.
    ///
    /// # Errors
    ///
    /// The store did not answer.
    ///
    /// # Cancel safety
    ///
    /// The reading goes on.
    pub async fn refresh_if_older(&self, age: Duration) -> Result<(), NotRefreshed> {
        let now = self.inner.surroundings.domain.monotonic();
        match self.inner.refreshes.read_at() {
            Some(read_at) if now.saturating_duration_since(read_at) < age => Ok(()),
            _ => self.refresh_now().await,
        }
    }

    /// Begins a reading that nobody waits for.
    pub fn refresh_soon(&self) {
        Inner::begin_refresh(&self.inner);
    }

    /// The worker behind a session that lives, as far as this node knows.
    #[must_use]
    pub fn get(&self, session: &SessionId) -> Option<Arc<Worker>> {
        let snapshot = self.inner.snapshot.load();
        let worker = snapshot.workers().get(session)?;
        worker.is_live().then(|| Arc::clone(worker))
    }

    /// Whether a session is known to have ended, for good.
    #[must_use]
    pub fn has_ended(&self, session: &SessionId) -> bool {
        self.inner.ended.contains(session)
    }

    /// Whether a session was read, also when its lease has run out since, as far as this node knows.
    pub(crate) fn has_read(&self, session: &SessionId) -> bool {
        self.inner.snapshot.load().workers().contains_key(session)
    }

    /// All workers that live, in the order of their session ids.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Worker>> {
        let now = self.inner.surroundings.domain.monotonic();
        let mut workers = self.inner.snapshot.load().in_order();
        workers.retain(|worker| worker.is_live_at(now));
        workers
    }

    /// How many there are.
    #[must_use]
    pub fn counts(&self) -> WorkerCounts {
        let mut counts = WorkerCounts::default();
        for worker in self.all() {
            match worker.state() {
                worker_state::ENDING => counts.ending += 1,
                worker_state::DRAINING => counts.draining += 1,
                worker_state::UNREACHABLE => counts.unreachable += 1,
                _ => counts.open += 1,
            }
        }
        counts
    }

    /// Who serves a namespace; `None` when nobody does or ever has, as far as this node knows.
    #[must_use]
    pub fn namespace(&self, env: &str, ns: &str) -> Option<Arc<Namespace>> {
        self.inner.snapshot.load().namespace(env, ns).cloned()
    }

    /// Whether the sessions have been read at all.
    #[must_use]
    pub fn is_primed(&self) -> bool {
        self.inner.refreshes.read_at().is_some()
    }

    /// Whether the store answered this node when it was last asked.
    #[must_use]
    pub fn store_answers(&self) -> bool {
        self.inner.answers.load(Ordering::Relaxed)
    }

    /// The store answered, or did not.
    pub(crate) fn note_answer(&self, answers: bool) {
        self.inner.note_answer(answers);
    }

    /// Sessions that come and go from now on. A subscriber that falls more than 1,024 changes behind misses the oldest.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<WorkerChange> {
        self.inner.changes.subscribe()
    }
}

impl Inner {
    pub(super) fn note_answer(&self, answers: bool) {
        if self.answers.swap(answers, Ordering::Relaxed) == answers {
            return;
        }
        if answers {
            tracing::info!(store = self.store.describe(), "the registry store answers");
        } else {
            tracing::warn!(
                store = self.store.describe(),
                "the registry store does not answer; known placements serve until their leases end"
            );
        }
    }
}

impl Gauges {
    fn set(&self, counts: WorkerCounts) {
        let figure = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.open.set(figure(counts.open));
        self.draining.set(figure(counts.draining));
        self.unreachable.set(figure(counts.unreachable));
        self.ending.set(figure(counts.ending));
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("counts", &self.counts())
            .field("store_answers", &self.store_answers())
            .finish_non_exhaustive()
    }
}
