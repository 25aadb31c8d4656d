//! `/metrics` in the Prometheus text format.

use std::sync::OnceLock;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::PinnedWorker;
use crate::error::{Error, Result};

/// The process's recorder, which there is one of however many workers ask for it.
static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

#[derive(Clone)]
pub(super) struct Exporter(PrometheusHandle);

impl Exporter {
    /// Installs the recorder, or finds the one that was installed here before.
    pub(super) fn install() -> Result<Self> {
        if let Some(handle) = RECORDER.get() {
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
        Ok(Self(RECORDER.get_or_init(|| handle).clone()))
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
