//! Asking who holds an id.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use pinned_domain::{Domain, FAR_FUTURE, Rng};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::claim::{Answer, Wanted};
use super::flight::{Boarded, Errand, FlightKey, Flights, Landing, Outcome};
use super::known::{KeyRef, Known, Recall};
use super::listen::Listener;
use super::{NotPlaced, Placed};
use crate::events::Events;
use crate::metrics::{Resolution, ResolutionCounts, Resolutions};
use crate::settings::Settings;
use crate::store::{Invalidation, PlacementKey, RegistryStore, SessionId};
use crate::workers::{Worker, Workers};

/// How long one operation of the store may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// What a forward needs of a grant, at most: the time that connecting may take (P5.12).
const FORWARD_NEEDS: Duration = Duration::from_secs(2);

/// Answers one question: who holds this id? Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Placement {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) store: Arc<dyn RegistryStore>,
    pub(super) workers: Workers,
    pub(super) events: Events,
    pub(super) domain: Domain,
    pub(super) known: Known,
    pub(super) flights: Arc<Flights>,
    pub(super) resolutions: Resolutions,
    pub(super) rng: Rng,
    /// What a forward needs of a grant: a worker whose lease ends sooner is given no new id.
    pub(super) forward_needs: Duration,
    pub(super) invalidations: Mutex<Option<mpsc::Receiver<Invalidation>>>,
}

impl Placement {
    /// Knows nothing yet. It trusts what it has read for longer than a second only while [`run`](Self::run) is polled.
    #[must_use]
    pub fn new(
        store: Arc<dyn RegistryStore>,
        workers: Workers,
        events: Events,
        domain: Domain,
        settings: &Settings,
    ) -> Self {
        let rng = domain.rng("placement").expect("a label that is not empty");
        let invalidations = store.invalidations();
        Self {
            inner: Arc::new(Inner {
                store,
                workers,
                events,
                domain,
                known: Known::new(),
                flights: Arc::new(Flights::new()),
                resolutions: Resolutions::new(),
                rng,
                // With a short lease, the wait for a heartbeat takes more of it.
                forward_needs: FORWARD_NEEDS.min(settings.lease_ttl / 4),
                invalidations: Mutex::new(invalidations),
            }),
        }
    }

    /// Forgets what the store says has changed, for as long as it is polled. With a store that cannot say so, it only waits.
    ///
    /// # Cancel safety
    ///
    /// What is known is in doubt from then on, and it may be run again.
    pub async fn run(&self) -> Infallible {
        let listener = Listener::new(&self.inner);
        if let Some(mut listener) = listener {
            listener.listen().await;
            tracing::warn!("the registry store tells of no more changes");
        }
        std::future::pending().await
    }

    /// Who holds an id, if this node knows; the fast way, which takes the id as it stands in the request, and allocates
    /// nothing.
    #[must_use]
    pub fn known(&self, env: &str, ns: &str, id: &str) -> Option<Arc<Placed>> {
        self.known_at(env, ns, id, self.inner.domain.monotonic())
    }

    /// As [`known`](Self::known), for whoever has just read the clock.
    #[must_use]
    #[inline]
    pub fn known_at(&self, env: &str, ns: &str, id: &str, now: Instant) -> Option<Arc<Placed>> {
        let placed = self.inner.recalled_at(KeyRef { env, ns, id }, now)?;
        self.inner.resolutions.count(Resolution::Cached);
        Some(placed)
    }

    /// The key of an id, which shares the text of the namespace with others where some worker serves it.
    #[must_use]
    pub fn key(&self, env: &str, ns: &str, id: &str) -> PlacementKey {
        match self.inner.workers.namespace(env, ns) {
            Some(shared) => PlacementKey::new(Arc::clone(&shared.env), Arc::clone(&shared.ns), id),
            None => PlacementKey::new(env, ns, id),
        }
    }

    /// Who holds `key`, placing it when nobody does. Of a known id this makes no round trip.
    ///
    /// A worker that has just registered may not have read its answer yet, and would refuse what is attested for its
    /// session: of the first 50 ms after, the rest is waited out.
    ///
    /// # Errors
    ///
    /// There is no holder.
    ///
    /// # Cancel safety
    ///
    /// The id may have been placed.
    pub async fn resolve(&self, key: &PlacementKey) -> Result<Arc<Placed>, NotPlaced> {
        self.resolve_above(key, 0).await
    }

    /// As [`resolve`](Self::resolve); when the id is placed, its epoch is above `above`, which is what the durable store has
    /// seen (P4.3). One that is held already stays as it is.
    ///
    /// # Errors
    ///
    /// There is no holder.
    ///
    /// # Cancel safety
    ///
    /// The id may have been placed.
    pub async fn resolve_above(
        &self,
        key: &PlacementKey,
        above: u64,
    ) -> Result<Arc<Placed>, NotPlaced> {
        let inner = &self.inner;
        if let Some(placed) = self.known(&key.env, &key.ns, &key.id) {
            return Ok(placed);
        }
        let boarded = inner.board(
            FlightKey {
                key: key.clone(),
                errand: Errand::Resolve { above },
            },
            FAR_FUTURE,
            || inner.recalled(KeyRef::of(key)),
            |inner, landing| async move {
                let wanted = Wanted {
                    above,
                    ..Wanted::new(landing.key())
                };
                inner.place(wanted).await.map(Answer::into_placed)
            },
        );
        // A resolution has no refusal that could stand.
        self.land(boarded).await?.ok_or(NotPlaced::NoWorkers)
    }

    /// Whether `session` holds `key` now. Places nothing; where this node knows that it does, this makes no round trip. That
    /// another does is asked again: the id may have moved a moment ago.
    ///
    /// # Errors
    ///
    /// [`NotPlaced::StoreAway`] alone.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn is_held_by(
        &self,
        key: &PlacementKey,
        session: &SessionId,
    ) -> Result<bool, NotPlaced> {
        match self.inner.recalled(KeyRef::of(key)) {
            Some(placed) if placed.worker.id == *session => Ok(true),
            _ => self.inner.look_up(key, session).await,
        }
    }

    /// Forgets what is known of an id, if it is still this.
    pub fn forget(&self, placed: &Arc<Placed>) {
        self.inner.known.forget(placed);
    }

    /// How requests have found their workers on this node (P3.3).
    #[must_use]
    pub fn resolutions(&self) -> ResolutionCounts {
        self.inner.resolutions.counts()
    }

    /// How many placements this node remembers.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.inner.known.len()
    }

    /// Waits for what was boarded, and counts it; a flight counts what it does for the one who started it.
    pub(super) async fn land(&self, boarded: Boarded) -> Outcome {
        let resolutions = &self.inner.resolutions;
        match boarded {
            Boarded::Known(placed) => {
                resolutions.count(Resolution::Cached);
                Ok(Some(placed))
            }
            Boarded::Started(flight) => {
                let outcome = flight.await;
                if let Err(error) = &outcome {
                    resolutions.count_failure(error);
                }
                outcome
            }
            Boarded::Joined(flight) => {
                let outcome = flight.await;
                match &outcome {
                    Ok(Some(_)) => resolutions.count(Resolution::Cached),
                    Ok(None) => {}
                    Err(error) => resolutions.count_failure(error),
                }
                outcome
            }
        }
    }
}

impl Resolutions {
    fn count_failure(&self, error: &NotPlaced) {
        match error {
            NotPlaced::NoWorkers => self.count(Resolution::NoBackends),
            NotPlaced::Quarantined(_) => self.count(Resolution::Quarantined),
            NotPlaced::Fenced(_) => self.count(Resolution::Fenced),
            // Neither is about workers: anyone can ask for what nobody serves.
            NotPlaced::UnknownNamespace | NotPlaced::StoreAway => {}
        }
    }
}

impl Inner {
    /// What is known of an id, and can be gone by now.
    pub(super) fn recalled(&self, key: KeyRef<'_>) -> Option<Arc<Placed>> {
        self.recalled_at(key, self.domain.monotonic())
    }

    #[inline]
    fn recalled_at(&self, key: KeyRef<'_>, now: Instant) -> Option<Arc<Placed>> {
        match self.known.recall(key, now) {
            Recall::Fresh(placed) => placed.worker.is_live_at(now).then_some(placed),
            // No use asking before the store answers again; the readings of the sessions find that out.
            Recall::Doubtful(placed) if !self.workers.store_answers() => self.still_served(&placed),
            Recall::Doubtful(_) | Recall::Unknown => None,
        }
    }

    /// A placement that was known, while its holder's lease runs; for when the store cannot be asked (P12.4).
    pub(super) fn still_served(&self, placed: &Arc<Placed>) -> Option<Arc<Placed>> {
        if placed.worker.is_live() {
            return Some(Arc::clone(placed));
        }
        // Another may stand for the session, at other addresses.
        let worker: Arc<Worker> = self.workers.get(&placed.worker.id)?;
        Some(Arc::new(Placed::new(
            placed.key.clone(),
            worker,
            placed.epoch,
        )))
    }

    pub(super) fn board<F>(
        self: &Arc<Self>,
        key: FlightKey,
        waits: Duration,
        known: impl FnOnce() -> Option<Arc<Placed>>,
        body: impl FnOnce(Arc<Self>, Landing) -> F,
    ) -> Boarded
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let shard = self.known.hash(&key.key);
        let until: Instant = self.domain.monotonic() + waits;
        self.flights.board(key, shard, until, known, |landing| {
            body(Arc::clone(self), landing).boxed()
        })
    }
}

impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Placement")
            .field("remembered", &self.remembered())
            .field("under_way", &self.inner.flights.len())
            .field("resolutions", &self.resolutions())
            .finish_non_exhaustive()
    }
}
