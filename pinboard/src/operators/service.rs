//! The service behind the routes of operators.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::probes::StoreProbe;
use super::{Figures, Readiness};
use crate::sessions::Registry;

/// How many calls ask all workers for their stats at once.
const COLLECTIONS: usize = 2;

/// What an [`Operators`] is made of.
#[derive(Clone)]
pub struct OperatorsOptions {
    /// What this node knows and whom it asks.
    pub registry: Registry,
    /// What this node counts.
    pub figures: Arc<dyn Figures>,
    /// The text of `/metrics`.
    pub render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Whether this node takes requests.
    pub readiness: Readiness,
    /// The fleet's leases that `/registry/health` shows, by the names that [`RegistryStore::lead`](crate::store::RegistryStore::lead)
    /// takes them under.
    pub leases: Vec<&'static str>,
}

/// What operators ask of the registry (P3).
///
/// Each method takes the caller, whose token and scope have been checked, and shows or changes only what their claims cover.
pub struct Operators {
    pub(super) registry: Registry,
    pub(super) figures: Arc<dyn Figures>,
    pub(super) render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(super) readiness: Readiness,
    pub(super) leases: Vec<&'static str>,
    pub(super) collections: Arc<Semaphore>,
    pub(super) probe: StoreProbe,
}

impl Operators {
    /// A service.
    #[must_use]
    pub fn new(options: OperatorsOptions) -> Arc<Self> {
        Arc::new(Self {
            registry: options.registry,
            figures: options.figures,
            render_metrics: options.render_metrics,
            readiness: options.readiness,
            leases: options.leases,
            collections: Arc::new(Semaphore::new(COLLECTIONS)),
            probe: StoreProbe::default(),
        })
    }

    /// What it works with.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl std::fmt::Debug for Operators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operators")
            .field("registry", &self.registry)
            .field("readiness", &self.readiness)
            .finish_non_exhaustive()
    }
}
