//! The worker: one process, its hosts, and how they are served.

mod banner;
mod builder;
mod connections;
mod drain;
mod environment;
mod fleet;
mod lifespan;
#[cfg(feature = "metrics")]
mod metrics;
mod probe;
mod process;
mod resume;
mod router;
mod serve;
mod service;
mod signals;
mod split;
mod stats;
mod store;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::api::definition::PinnedApi;
use crate::domain::Domain;
use crate::host::core::Host;
use crate::host::env::WorkerEnv;
use crate::host::handle::PinnedHost;
use crate::host::hosts::Hosts;
use crate::lease::Lease;

pub use builder::WorkerBuilder;
pub use drain::SigtermDrain;
pub use lifespan::RunningWorker;
pub use probe::{SelfProbe, Unready};

/// One process that hosts instances: its namespaces, its lease, and its HTTP surface. A cheap handle.
///
/// ```no_run
/// # use pinned::PinnedWorker;
/// # #[tokio::main]
/// # async fn main() -> pinned::Result<()> {
/// PinnedWorker::from_registry()?.serve().await
/// # }
/// ```
#[derive(Clone)]
pub struct PinnedWorker {
    pub(crate) core: Arc<WorkerCore>,
}

pub(crate) struct WorkerCore {
    pub(crate) env: Arc<WorkerEnv>,
    pub(crate) hosts: Arc<Hosts>,
    settings: Settings,
    /// Its part in a fleet, where it is in one.
    fleet: fleet::Fleet,
    /// What `serve` answers beside the namespaces.
    extra: Option<axum::Router>,
    process: process::Process,
    /// What its self-probe has found.
    health: Arc<probe::Health>,
    #[cfg(feature = "metrics")]
    metrics: Option<metrics::Exporter>,
}

/// What concerns the process rather than its instances.
#[derive(Clone)]
struct Settings {
    address: SocketAddr,
    drain_deadline: Duration,
    /// How it watches itself, where it does.
    probing: Option<probe::Probing>,
    /// Where probes are answered besides.
    probe_address: Option<SocketAddr>,
}

impl PinnedWorker {
    /// A worker that is put together by hand.
    pub fn builder() -> WorkerBuilder {
        WorkerBuilder::new()
    }

    /// The typed handle of the first namespace that hosts `T`.
    pub fn hosted<T: PinnedApi>(&self) -> Option<PinnedHost<T>> {
        self.core.hosts.iter().find_map(PinnedHost::new)
    }

    /// The typed handle of `namespace`, if it hosts `T`.
    pub fn hosted_at<T: PinnedApi>(&self, namespace: &str) -> Option<PinnedHost<T>> {
        self.core
            .hosts
            .iter()
            .find(|host| &*host.namespace == namespace)
            .and_then(PinnedHost::new)
    }

    /// The namespaces, in the order in which they were attached.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.core.hosts.iter().map(|host| &*host.namespace)
    }

    /// The worker's lease.
    pub fn lease(&self) -> &Lease {
        &self.core.env.lease
    }

    /// The worker's clock, randomness and tokens.
    pub fn domain(&self) -> &Domain {
        &self.core.env.domain
    }

    /// The secret that attestations of this worker are signed with, and that opens its `/_pinned` routes.
    pub fn secret(&self) -> &str {
        &self.core.env.secret
    }

    /// The audience of an attestation for a request to `namespace`; `None` where requests need none. The seam through
    /// which a test stands in for the control plane.
    #[doc(hidden)]
    pub fn attestation_audience(&self, namespace: &str) -> Option<String> {
        let placements = self.core.env.placements.as_ref()?;
        let session = placements.session_audience();
        session.as_deref().map(str::to_owned).or_else(|| {
            self.each_host()
                .find(|host| &*host.namespace == namespace)
                .map(|host| host.audience.clone())
        })
    }

    pub(crate) fn each_host(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.core.hosts.iter()
    }
}

impl fmt::Debug for PinnedWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedWorker")
            .field("namespaces", &self.namespaces().collect::<Vec<_>>())
            .field("address", &self.core.settings.address)
            .finish_non_exhaustive()
    }
}
