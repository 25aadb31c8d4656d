//! A holder that was found, and the questions that find it.

use std::sync::Arc;
use std::time::SystemTime;

use super::claim::Answer;
use super::known::Ticket;
use super::service::{Inner, PATIENCE};
use super::{NotPlaced, Placed};
use crate::metrics::Resolution;
use crate::store::{Event, EventKind, FenceState, PlacementKey, Row, SessionId, StoreFuture};
use crate::workers::Worker;

impl Inner {
    /// A holder that lives.
    pub(super) async fn held(
        &self,
        ticket: &Ticket,
        key: &PlacementKey,
        row: &Row,
        worker: Arc<Worker>,
    ) -> Answer {
        let fenced_in = match row.fence {
            Some(FenceState::Ahead { starts_in, .. }) => Some(starts_in),
            _ => None,
        };
        let placed = Arc::new(Placed::new(key.clone(), worker, row.epoch));
        self.settle(&placed.worker).await;
        self.known.remember(ticket, Arc::clone(&placed), fenced_in);
        self.found(placed, Resolution::Held)
    }

    /// A holder that has just become one.
    pub(super) async fn placed(&self, ticket: &Ticket, placed: Placed, replaced: bool) -> Answer {
        let placed = Arc::new(placed);
        let (kind, resolution) = if replaced {
            (EventKind::Replaced, Resolution::Replaced)
        } else {
            (EventKind::Placed, Resolution::Placed)
        };
        self.events.record(Event {
            seq: 0,
            at: unix_millis(self.domain.now()),
            kind,
            client_id: Some(Arc::clone(placed.worker.client_id())),
            session_id: Some(placed.worker.id.as_str().into()),
            env: Some(Arc::clone(&placed.key.env)),
            hostname: Some(Arc::clone(&placed.worker.view.read().record.hostname)),
            namespaces: vec![Arc::clone(&placed.key.ns)],
            id: Some(Arc::clone(&placed.key.id)),
            epoch: Some(placed.epoch),
            detail: None,
        });
        self.settle(&placed.worker).await;
        self.known.remember(ticket, Arc::clone(&placed), None);
        self.found(placed, resolution)
    }

    pub(super) fn found(&self, placed: Arc<Placed>, resolution: Resolution) -> Answer {
        self.resolutions.count(resolution);
        Answer::Placed(placed)
    }

    /// Waits until a worker that has just registered has read its session.
    async fn settle(&self, worker: &Worker) {
        let left = worker.settles_in(self.domain.monotonic());
        if !left.is_zero() {
            self.domain.sleep(left).await;
        }
    }

    pub(super) async fn read_sessions(&self) -> Result<(), NotPlaced> {
        let read = self.workers.refresh_now().await;
        read.map_err(|_| NotPlaced::StoreAway)
    }

    /// Whether `session` holds `key`, as the store has it now.
    pub(super) async fn look_up(
        &self,
        key: &PlacementKey,
        session: &SessionId,
    ) -> Result<bool, NotPlaced> {
        let ticket = self.known.ticket(key, self.domain.monotonic());
        let row = self.ask(self.store.row(key)).await?;
        let Some(row) = row.filter(|row| row.current && row.session == *session) else {
            return Ok(false);
        };
        if let Some(worker) = self.workers.get(session) {
            let fenced_in = match row.fence {
                Some(FenceState::Ahead { starts_in, .. }) => Some(starts_in),
                Some(FenceState::Passed) | None => None,
                Some(FenceState::Standing { .. }) => return Ok(true),
            };
            // It calls, so it knows its session.
            let placed = Placed::new(key.clone(), worker, row.epoch);
            self.known.remember(&ticket, Arc::new(placed), fenced_in);
        }
        Ok(true)
    }

    /// Puts one question to the store, for a while.
    pub(super) async fn ask<T>(&self, question: StoreFuture<'_, T>) -> Result<T, NotPlaced> {
        match self.domain.timeout(PATIENCE, question).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if !error.is_transient() => {
                tracing::error!(%error, "the registry store cannot be used");
                Err(NotPlaced::StoreAway)
            }
            Ok(Err(_)) | Err(_) => {
                self.workers.note_answer(false);
                Err(NotPlaced::StoreAway)
            }
        }
    }
}

fn unix_millis(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
