//! What follows when a worker did not run a request (P5.9, P5.10).

use std::sync::Arc;
use std::time::Duration;

use pinned_domain::FAR_FUTURE;

use super::claim::Wanted;
use super::flight::{Errand, FlightKey, Outcome};
use super::known::KeyRef;
use super::service::Inner;
use super::{NotPlaced, Placed, Placement, WorkerRefusal};
use crate::metrics::Resolution;
use crate::store::{PlacementKey, Release, SessionId};

/// How long a request waits for a row to move (P5.10).
const MOVES_WITHIN: Duration = Duration::from_secs(2);

impl Placement {
    /// Who holds the id after `placed` refused it without running it; `None` when the refusal stands and is relayed.
    ///
    /// After [`NotResident`](WorkerRefusal::NotResident) the row is freed, if it still names that session and epoch, and the id
    /// placed on another worker; where there is none, the refusal stands. After [`Moving`](WorkerRefusal::Moving) the row is
    /// looked at for up to 2 s until it has moved. Requests that were refused by the same holder share the work.
    ///
    /// # Errors
    ///
    /// There is no holder now.
    ///
    /// # Cancel safety
    ///
    /// The row may have been freed, or the id placed.
    pub async fn after_refusal(
        &self,
        placed: &Arc<Placed>,
        refusal: WorkerRefusal,
    ) -> Result<Option<Arc<Placed>>, NotPlaced> {
        let inner = &self.inner;
        self.forget(placed);
        let known = || {
            inner
                .recalled(KeyRef::of(&placed.key))
                .filter(|known| !known.is_same_holding(placed))
        };
        if let Some(other) = known() {
            inner.resolutions.count(Resolution::Cached);
            return Ok(Some(other));
        }
        let (session, epoch) = (placed.worker.id.clone(), placed.epoch);
        let key = placed.key.clone();
        match refusal {
            WorkerRefusal::NotResident => {
                placed.worker.note_refusal();
                let errand = Errand::Replace {
                    session: session.clone(),
                    epoch,
                };
                let boarded = inner.board(
                    FlightKey { key, errand },
                    FAR_FUTURE,
                    known,
                    move |inner, landing| async move {
                        inner.replace(landing.key(), session, epoch).await
                    },
                );
                self.land(boarded).await
            }
            WorkerRefusal::Moving => {
                let errand = Errand::Move {
                    session: session.clone(),
                    epoch,
                };
                let boarded = inner.board(
                    FlightKey { key, errand },
                    MOVES_WITHIN,
                    known,
                    move |inner, landing| async move {
                        inner.await_move(&landing, session, epoch).await
                    },
                );
                let landed = self.land(boarded);
                // The flight goes on for those who have joined it later.
                inner
                    .domain
                    .timeout(MOVES_WITHIN, landed)
                    .await
                    .unwrap_or(Ok(None))
            }
        }
    }
}

impl Inner {
    /// Frees the row of a holder that would not, and places the id elsewhere.
    async fn replace(
        self: &Arc<Self>,
        key: &PlacementKey,
        session: SessionId,
        epoch: u64,
    ) -> Outcome {
        let release = [Release {
            session: session.clone(),
            key: key.clone(),
            epoch: Some(epoch),
        }];
        self.ask(self.store.release(&release)).await?;
        let mut wanted = Wanted {
            unless: Some((session.clone(), epoch)),
            ..Wanted::new(key)
        };
        wanted.rules.exclude(&session);
        match self.place(wanted).await {
            Ok(answer) => Ok(answer.into_placed()),
            // The worker's own refusal says more.
            Err(NotPlaced::NoWorkers) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
