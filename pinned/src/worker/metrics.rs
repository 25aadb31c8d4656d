//! `/metrics` in the Prometheus text format.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;

use super::PinnedWorker;
use crate::domain::Domain;
use crate::error::{Error, Result};

/// The process's recorder, which there is one of however many workers ask for it.
static RECORDER: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// How often samples are put into their buckets. Until then each is kept as it is, whether or not anybody reads.
const UPKEEP: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct Exporter(PrometheusHandle);

impl Exporter {
    /// Installs the recorder, or finds the one that was installed here before.
    pub(super) fn install() -> Result<Self> {
        // Held until the end: of two workers that are built at once, one finds the other's.
        let mut recorder = RECORDER.lock();
        if let Some(handle) = &*recorder {
            return Ok(Self(handle.clone()));
        }
        let handle = PrometheusBuilder::new()
            .set_buckets(&BUCKETS)
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|error| {
                Error::config(format!(
                    "`metrics` cannot install its recorder, because the program has one already: {error}"
                ))
            })?;
        *recorder = Some(handle.clone());
        Ok(Self(handle))
    }

    /// Keeps the recorder from growing where nobody reads it. Never returns.
    pub(super) async fn keep_up(self, domain: Domain) {
        loop {
            domain.sleep(UPKEEP).await;
            self.0.run_upkeep();
        }
    }

    pub(super) fn router(&self) -> Router<PinnedWorker> {
        let handle = self.0.clone();
        Router::new().route(
            "/metrics",
            get(move || {
                let handle = handle.clone();
                async move {
                    handle.run_upkeep();
                    handle.render()
                }
            }),
        )
    }
}

/// The default buckets of Prometheus clients, in seconds (W15).
const BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
