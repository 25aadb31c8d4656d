//! What is asked of a worker, one method each.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::api::definition::{Blueprint, PinnedApi};
use crate::api::state::SharedState;
use crate::domain::Domain;
use crate::durability::{Durability, StateStore};
use crate::error::Result;
#[cfg(feature = "fleet")]
use crate::fleet::{
    settings::FleetSettings,
    transport::{ControlPlane, DataPlane},
};
use crate::host::env::Placements;
use crate::host::options::HostOptions;
use crate::worker::environment::Environment;
use crate::worker::probe::SelfProbe;

/// A worker that is being put together. Mistakes are reported by [`WorkerBuilder::build`].
///
/// ```
/// # use pinned::{PinnedWorker, pinned_api};
/// # #[derive(Default)]
/// # struct Room;
/// #[pinned_api]
/// impl Room {}
///
/// let worker = PinnedWorker::builder()
///     .host::<Room>("/rooms")
///     .bind(([127, 0, 0, 1], 0))
///     .build()?;
/// assert_eq!(worker.namespaces().collect::<Vec<_>>(), ["/rooms"]);
/// # Ok::<(), pinned::Error>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct WorkerBuilder {
    pub(super) mounts: Vec<(Blueprint, HostOptions)>,
    /// Finds the structs that are mounted besides.
    pub(super) registry: Option<fn() -> Result<Vec<Blueprint>>>,
    pub(super) environment: Option<Environment>,
    pub(super) address: Option<SocketAddr>,
    pub(super) drain_deadline: Duration,
    pub(super) lease_buffer: Option<Duration>,
    pub(super) self_probe: SelfProbe,
    pub(super) probe_address: Option<SocketAddr>,
    pub(super) hostname: Option<String>,
    #[cfg(feature = "fleet")]
    pub(super) fleet: FleetSettings,
    #[cfg(feature = "fleet")]
    pub(super) control_plane: Option<Arc<dyn ControlPlane>>,
    #[cfg(feature = "fleet")]
    pub(super) data_plane: Option<Arc<dyn DataPlane>>,
    pub(super) domain: Option<Domain>,
    pub(super) shared: SharedState,
    pub(super) extra: Option<axum::Router>,
    pub(super) placements: Option<Arc<dyn Placements>>,
    pub(super) durability: Option<Arc<dyn Durability>>,
    pub(super) store: Option<Arc<dyn StateStore>>,
    pub(super) max_concurrent_dispatches: usize,
    #[cfg(feature = "metrics")]
    pub(super) metrics: bool,
}

impl WorkerBuilder {
    pub(in crate::worker) fn new() -> Self {
        Self {
            mounts: Vec::new(),
            registry: None,
            environment: None,
            address: None,
            // Two lease terms of a control plane (W13.2).
            drain_deadline: Duration::from_secs(30),
            lease_buffer: None,
            self_probe: SelfProbe::new(),
            probe_address: None,
            hostname: None,
            #[cfg(feature = "fleet")]
            fleet: FleetSettings::default(),
            #[cfg(feature = "fleet")]
            control_plane: None,
            #[cfg(feature = "fleet")]
            data_plane: None,
            domain: None,
            shared: SharedState::default(),
            extra: None,
            placements: None,
            durability: None,
            store: None,
            max_concurrent_dispatches: 256,
            #[cfg(feature = "metrics")]
            metrics: false,
        }
    }

    /// Mounts `T` under `namespace`, with the options of its attribute.
    pub fn host<T: PinnedApi>(self, namespace: impl Into<String>) -> Self {
        self.host_with::<T>(HostOptions::new().namespace(namespace))
    }

    /// Mounts `T` with `options`, under the namespace that they name or else that of its attribute.
    pub fn host_with<T: PinnedApi>(mut self, options: HostOptions) -> Self {
        self.mounts.push((Blueprint::of::<T>(), options));
        self
    }

    /// Mounts what `registry` finds, after what is mounted by hand.
    pub(crate) fn registry(mut self, registry: fn() -> Result<Vec<Blueprint>>) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Reads what is not set by hand from the environment: see [`PinnedWorker::from_registry`](crate::PinnedWorker::from_registry).
    pub fn environment(mut self) -> Self {
        self.environment = Some(Environment::of_process());
        self
    }

    /// Where [`PinnedWorker::serve`](crate::PinnedWorker::serve) listens (0.0.0.0:8000). Port 0 takes a free one.
    pub fn bind(mut self, address: impl Into<SocketAddr>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// How long a drain on SIGTERM waits before it cuts off what is left (30 s).
    pub fn drain_deadline(mut self, deadline: Duration) -> Self {
        self.drain_deadline = deadline;
        self
    }

    /// The margin before the end of the lease at which it turns unhealthy (5 s).
    pub fn lease_buffer(mut self, buffer: Duration) -> Self {
        self.lease_buffer = Some(buffer);
        self
    }

    /// How the worker watches itself: each second, unready after 5 s without an answer (`PINNED_PROBE_INTERVAL_MS`,
    /// `PINNED_PROBE_THRESHOLD_MS`).
    ///
    /// A worker whose runtime stalls, or whose own router does not answer, is wedged: `/readyz` and `/livez` turn 503 until it answers
    /// again, and pinboard places nothing new there meanwhile. A stall of the whole runtime keeps it from answering anything on its own
    /// port; [`WorkerBuilder::probe_address`] has one that still does.
    pub fn self_probe(mut self, probe: SelfProbe) -> Self {
        self.self_probe = probe;
        self
    }

    /// Answers `/readyz` and `/livez` here as well (`PINNED_PROBE_PORT`, on the address of `BIND`), from a thread beside the runtime:
    /// also when the runtime stalls. Port 0 takes a free one, which [`RunningWorker::probe_address`](crate::RunningWorker::probe_address)
    /// tells.
    pub fn probe_address(mut self, address: impl Into<SocketAddr>) -> Self {
        self.probe_address = Some(address.into());
        self
    }

    /// The worker's stable name (`PINNED_HOSTNAME`), to which requests are routed in hostname-aware mode; an `env`
    /// needs one (H16.3).
    pub fn hostname(mut self, hostname: impl Into<String>) -> Self {
        self.hostname = Some(hostname.into());
        self
    }

    /// The clock, randomness and tokens of everything in this worker: for simulations.
    pub fn domain(mut self, domain: Domain) -> Self {
        self.domain = Some(domain);
        self
    }

    /// Shares `value` with every instance: [`Context::state`](crate::Context::state) finds it by its type.
    pub fn state<S: Send + Sync + 'static>(mut self, value: S) -> Self {
        self.shared.insert(value);
        self
    }

    /// Serves `router` beside the namespaces, which come first.
    ///
    /// # Panics
    ///
    /// When two routers that are merged answer the same path. [`PinnedWorker::serve`](crate::PinnedWorker::serve) panics likewise when one answers
    /// `/readyz`, `/livez`, `/_pinned/stats` or, where it is served, `/metrics`.
    pub fn merge(mut self, router: axum::Router) -> Self {
        self.extra = Some(match self.extra {
            Some(known) => known.merge(router),
            None => router,
        });
        self
    }

    /// Serves `/metrics` in the Prometheus text format, open to whoever reaches it.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, serve: bool) -> Self {
        self.metrics = serve;
        self
    }

    /// The control plane's part in placing ids. The seam through which a test stands in for a registration.
    #[doc(hidden)]
    pub fn placements(mut self, placements: Arc<dyn Placements>) -> Self {
        self.placements = Some(placements);
        self
    }

    /// Where durable state is kept. Without one, `PINNED_STORE` says, where the environment is read; else it is
    /// `sqlite:pinned.db`. It is used if anything that is mounted keeps state, or if it was given here.
    pub fn store(mut self, store: impl StateStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// The same for a store that is shared.
    pub fn shared_store(mut self, store: Arc<dyn StateStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// How many tray items may be handled at one time, over all hosts (256).
    pub fn max_concurrent_dispatches(mut self, dispatches: usize) -> Self {
        self.max_concurrent_dispatches = dispatches;
        self
    }

    /// The durable side of instances, for tests that stand in for it.
    #[doc(hidden)]
    pub fn durability(mut self, durability: Arc<dyn Durability>) -> Self {
        self.durability = Some(durability);
        self
    }
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("mounts", &self.mounts.len())
            .field("registry", &self.registry.is_some())
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
