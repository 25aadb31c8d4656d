//! Removes what dead sessions leave behind, on one node at a time, and tells of what happens to the fleet as a whole.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use pinned_domain::{Domain, ErrorChain};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::directory::SHORTEST_PAUSE;
use super::{WorkerChange, Workers};
use crate::events::Events;
use crate::settings::Settings;
use crate::store::{Event, EventKind, RegistryStore, StoreError};

/// The name of the sweeper's lease in the store.
pub const SWEEPER: &str = "sweeper";

/// How many sweep intervals the lease outlasts, so that a slow round does not lose it.
const LEASE_ROUNDS: u32 = 5;

/// The shortest such lease.
const SHORTEST_LEASE: Duration = Duration::from_secs(5);

/// Removes the rows of dead sessions every sweep interval, on the node that leads.
///
/// The rows are free without it: whoever asks for such an id takes it over. The sweep keeps what nobody asks for from
/// piling up. Since one node leads, it is also the one that records what every node sees and nobody did: a `session_lost`
/// whose lease ran out, and a `quarantine`.
pub struct Sweeper {
    store: Arc<dyn RegistryStore>,
    workers: Workers,
    events: Events,
    domain: Domain,
    node: Arc<str>,
    interval: Duration,
    leads_until: Mutex<Option<Instant>>,
}

impl Sweeper {
    /// The sweeper of one node; `node` is its name among the nodes of the fleet.
    #[must_use]
    pub fn new(
        store: Arc<dyn RegistryStore>,
        workers: Workers,
        events: Events,
        domain: Domain,
        settings: &Settings,
        node: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            store,
            workers,
            events,
            domain,
            node: node.into(),
            interval: settings.sweep_interval.max(SHORTEST_PAUSE),
            leads_until: Mutex::new(None),
        }
    }

    /// Whether this node leads now.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        let now = self.domain.monotonic();
        self.leads_until.lock().is_some_and(|until| now < until)
    }

    /// Sweeps every sweep interval while this node leads, for as long as it is polled.
    ///
    /// # Cancel safety
    ///
    /// The lease is kept until it runs out; [`stand_down`](Self::stand_down) gives it up.
    pub async fn run(&self) -> Infallible {
        let mut changes = self.workers.changes();
        let mut quarantined = false;
        loop {
            let next = self.domain.sleep(self.interval);
            if let Err(error) = self.round(&mut quarantined).await {
                tracing::debug!(error = %ErrorChain(&error), "a sweep broke off");
            }
            tokio::pin!(next);
            loop {
                tokio::select! {
                    biased;
                    change = changes.recv() => match change {
                        Ok(WorkerChange::Left { worker, lost: true }) => self.tell_of_loss(&worker),
                        Ok(_) => {}
                        Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "session ends went by unrecorded"),
                        // The sender is in `workers`.
                        Err(RecvError::Closed) => break,
                    },
                    () = &mut next => break,
                }
            }
        }
    }

    /// Gives the lease up, if this node has it.
    ///
    /// # Errors
    ///
    /// The store does not answer; the lease runs out by itself.
    ///
    /// # Cancel safety
    ///
    /// The lease may be given up or not.
    pub async fn stand_down(&self) -> Result<(), StoreError> {
        *self.leads_until.lock() = None;
        self.store.stand_down(SWEEPER, &self.node).await
    }

    async fn round(&self, quarantined: &mut bool) -> Result<(), StoreError> {
        if !self.lead().await? {
            return Ok(());
        }
        let ends_in = self.store.quarantine().await?;
        if let Some(ends_in) = ends_in.filter(|_| !*quarantined) {
            self.events.record(Event {
                detail: Some(format!(
                    "nothing new is placed for {} ms",
                    ends_in.as_millis()
                )),
                ..self.event(EventKind::Quarantine)
            });
        }
        *quarantined = ends_in.is_some();
        let mut renewed_at = self.domain.monotonic();
        while self.store.sweep().await? {
            // A long sweep must not outlive the lease.
            if self.domain.monotonic() - renewed_at < self.lease() / 2 {
                continue;
            }
            if !self.lead().await? {
                break;
            }
            renewed_at = self.domain.monotonic();
        }
        Ok(())
    }

    async fn lead(&self) -> Result<bool, StoreError> {
        let lease = self.lease();
        let until = self.domain.monotonic() + lease;
        let leads = self.store.lead(SWEEPER, &self.node, lease).await?;
        *self.leads_until.lock() = leads.then_some(until);
        Ok(leads)
    }

    fn lease(&self) -> Duration {
        (self.interval * LEASE_ROUNDS).max(SHORTEST_LEASE)
    }

    fn tell_of_loss(&self, worker: &super::Worker) {
        if !self.is_leading() {
            return;
        }
        let view = Arc::clone(&worker.view.read());
        self.events.record(Event {
            client_id: Some(Arc::clone(worker.client_id())),
            session_id: Some(worker.id.as_str().into()),
            env: Some(Arc::clone(&view.record.env)),
            hostname: Some(Arc::clone(&view.record.hostname)),
            namespaces: view.record.namespaces.clone(),
            ..self.event(EventKind::SessionLost)
        });
    }

    fn event(&self, kind: EventKind) -> Event {
        Event {
            seq: 0,
            at: unix_millis(self.domain.now()),
            kind,
            client_id: None,
            session_id: None,
            env: None,
            hostname: None,
            namespaces: Vec::new(),
            id: None,
            epoch: None,
            detail: None,
        }
    }
}

fn unix_millis(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

impl fmt::Debug for Sweeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweeper")
            .field("node", &self.node)
            .field("leading", &self.is_leading())
            .finish_non_exhaustive()
    }
}
