//! Waking an id through its holder.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};
use pinned_domain::ErrorChain;
use pinned_wire::headers::{ATTESTATION, EPOCH, REFUSAL};
use url::Url;

use super::{Attempt, EpochFloor, Fleet, FleetAway, Holder};
use crate::placement::{NotPlaced, Placed, Placement, WorkerRefusal};
use crate::store::{PlacementKey, RegistryStore};
use crate::upstream::{Fetch, Fetched, Fetcher};
use crate::workers::Workers;

/// How often one attempt is placed again, as for any request (P5.9).
const PLACED_AGAIN: usize = 3;
/// To an instance that lives a wake is a question, and to any other an order: neither takes long.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What a wake answers is short, and what else may come is not read.
const LIMIT: usize = 64 << 10;

/// The fleet, as placement and the workers of this node have it.
pub struct PlacedFleet {
    /// Where rows are read.
    pub store: Arc<dyn RegistryStore>,
    /// Who lives.
    pub workers: Workers,
    /// Who holds what.
    pub placement: Placement,
    /// What the store puts every new epoch above.
    pub floor: EpochFloor,
    /// Sends the wakes.
    pub fetcher: Arc<dyn Fetcher>,
}

impl Fleet for PlacedFleet {
    fn holder<'a>(
        &'a self,
        key: &'a PlacementKey,
    ) -> BoxFuture<'a, Result<Option<Holder>, FleetAway>> {
        async move {
            let row = self.store.row(key).await?;
            Ok(row.filter(|row| row.current).and_then(|row| {
                // One that this node does not know may live all the same; placing the id finds out.
                let worker = self.workers.get(&row.session)?;
                Some(Holder {
                    session: worker.id.clone(),
                    epoch: row.epoch,
                })
            }))
        }
        .boxed()
    }

    fn wake<'a>(&'a self, key: &'a PlacementKey, above: u64) -> BoxFuture<'a, Attempt> {
        async move {
            match self.attempt(key, above).await {
                Ok(attempt) => attempt,
                Err(why) => Attempt::NotPlaced(why),
            }
        }
        .boxed()
    }

    fn raise_floor(&self, epoch: u64) {
        self.floor.raise(epoch);
    }

    fn is_cold(&self) -> BoxFuture<'_, Result<bool, FleetAway>> {
        async move { Ok(self.store.quarantine().await?.is_some()) }.boxed()
    }
}

impl PlacedFleet {
    async fn attempt(&self, key: &PlacementKey, above: u64) -> Result<Attempt, NotPlaced> {
        let mut placed = self.placement.resolve_above(key, above).await?;
        for _ in 0..=PLACED_AGAIN {
            match self.send(&placed).await {
                Said::Awake => {
                    return Ok(Attempt::Awake(Holder {
                        session: placed.worker.id.clone(),
                        epoch: placed.epoch,
                    }));
                }
                Said::Activating => return Ok(Attempt::Activating),
                Said::NotResident => {
                    let refusal = WorkerRefusal::NotResident;
                    match self.placement.after_refusal(&placed, refusal).await? {
                        Some(elsewhere) => placed = elsewhere,
                        None => break,
                    }
                }
                Said::Later => {
                    // Unlike a request, a wake has time: the next attempt asks the store again.
                    self.placement.forget(&placed);
                    break;
                }
                Said::Nothing => return Ok(Attempt::Unreachable),
                Said::Other(status) => {
                    let status = status.as_u16();
                    return Ok(Attempt::Failed { status });
                }
            }
        }
        Ok(Attempt::Refused)
    }

    async fn send(&self, placed: &Placed) -> Said {
        let view = Arc::clone(&*placed.worker.view.read());
        let Ok(mut url) = Url::parse(&view.record.advertise_url) else {
            return Said::Nothing;
        };
        let path = format!(
            "{}{}/{}/_wake",
            url.path().trim_end_matches('/'),
            placed.key.ns,
            placed.key.id
        );
        url.set_path(&path);
        let mut headers = HeaderMap::new();
        headers.insert(ATTESTATION, placed.worker.anonymous_token());
        headers.insert(EPOCH, placed.epoch_header.clone());
        let fetch = Fetch {
            method: Method::POST,
            addresses: Some(view.record.addresses.clone()),
            headers,
            timeout: TIMEOUT,
            limit: LIMIT,
            ..Fetch::get(url)
        };
        match self.fetcher.fetch(fetch).await {
            Ok(answer) => Said::read(&answer),
            Err(error) => {
                tracing::debug!(
                    key = %placed.key, session = %placed.worker.id, error = %ErrorChain(&error),
                    "a wake got no answer"
                );
                Said::Nothing
            }
        }
    }
}

/// What a worker says to a wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Awake,
    Activating,
    NotResident,
    Later,
    Other(StatusCode),
    Nothing,
}

impl Said {
    fn read(answer: &Fetched) -> Self {
        let refusal = answer.headers.get(REFUSAL).map(|reason| reason.as_bytes());
        match (answer.status, refusal) {
            (StatusCode::OK, _) => Self::Awake,
            (StatusCode::ACCEPTED, _) => Self::Activating,
            // The reasons of P5.9 for which the id is not resident there; all others, and none, may pass.
            (
                StatusCode::SERVICE_UNAVAILABLE,
                Some(
                    b"lease-unhealthy" | b"lease-expired" | b"draining" | b"capacity"
                    | b"activation-queue",
                ),
            ) => Self::NotResident,
            (StatusCode::SERVICE_UNAVAILABLE, _) => Self::Later,
            (other, _) => Self::Other(other),
        }
    }
}
