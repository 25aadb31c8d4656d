//! Putting a worker together.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::environment::Environment;
use tokio::sync::Semaphore;

use super::{PinnedWorker, Settings, WorkerCore, nothing_hosted, process::Process, store};
use crate::api::definition::{Blueprint, PinnedApi};
use crate::api::state::SharedState;
use crate::domain::Domain;
use crate::durability::{Durability, StateStore, StoreDurability};
use crate::error::{Error, Result};
use crate::fleet::local::LocalTransport;
use crate::host::core::Host;
use crate::host::env::{Placements, WorkerEnv};
use crate::host::hosts::Hosts;
use crate::host::options::HostOptions;
use crate::lease::{Lease, LeaseSettings};

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
    mounts: Vec<(Blueprint, HostOptions)>,
    /// Finds the structs that are mounted besides.
    registry: Option<fn() -> Result<Vec<Blueprint>>>,
    environment: Option<Environment>,
    address: Option<SocketAddr>,
    drain_deadline: Duration,
    lease_buffer: Option<Duration>,
    hostname: Option<String>,
    domain: Option<Domain>,
    shared: SharedState,
    extra: Option<axum::Router>,
    placements: Option<Arc<dyn Placements>>,
    durability: Option<Arc<dyn Durability>>,
    store: Option<Arc<dyn StateStore>>,
    max_concurrent_dispatches: usize,
    #[cfg(feature = "metrics")]
    metrics: bool,
}

impl WorkerBuilder {
    pub(super) fn new() -> Self {
        Self {
            mounts: Vec::new(),
            registry: None,
            environment: None,
            address: None,
            // Two lease terms of a control plane (W13.2).
            drain_deadline: Duration::from_secs(30),
            lease_buffer: None,
            hostname: None,
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

    /// Reads what is not set by hand from the environment: see [`PinnedWorker::from_registry`].
    pub fn environment(mut self) -> Self {
        self.environment = Some(Environment::of_process());
        self
    }

    /// Where [`PinnedWorker::serve`] listens (0.0.0.0:8000). Port 0 takes a free one.
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

    /// The worker's stable name; a host's `env` needs one (H16.3).
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
    /// When two routers that are merged answer the same path. [`PinnedWorker::serve`] panics likewise when one answers
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

    /// The control plane's part in placing ids. The seam that a registration will fill.
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

    /// Checks everything and makes the worker.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] and [`Error::DuplicateNamespace`], with what is expected.
    pub fn build(mut self) -> Result<PinnedWorker> {
        if let Some(registry) = self.registry {
            let found = registry()?.into_iter();
            self.mounts
                .extend(found.map(|blueprint| (blueprint, HostOptions::new())));
        }
        if self.mounts.is_empty() {
            return Err(nothing_hosted());
        }
        let environment = self.environment.unwrap_or_default();
        environment.check_mode()?;
        if self.placements.is_none() {
            Environment::of_process().guard_dev_mode()?;
        }
        let address = match self.address {
            Some(address) => address,
            None => {
                environment.address(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8000))?
            }
        };
        let domain = self.domain.unwrap_or_else(Domain::real);
        let lease = Lease::new(domain.clone());
        if let Some(buffer) = self.lease_buffer {
            lease
                .configure(LeaseSettings::new().buffer(buffer))
                .map_err(|error| Error::config(error.to_string()))?;
        }
        if self.max_concurrent_dispatches == 0
            || self.max_concurrent_dispatches > Semaphore::MAX_PERMITS
        {
            return Err(Error::option("max_concurrent_dispatches", "is at least 1"));
        }
        let needs_store = self
            .mounts
            .iter()
            .any(|(blueprint, _)| (blueprint.needs_store)());
        let store = match (self.store, needs_store && self.durability.is_none()) {
            (Some(store), _) => Some(store),
            (None, true) => Some(store::named(environment.store(), &domain)?),
            (None, false) => None,
        };
        let durability = match &store {
            None => self.durability,
            Some(store) => Some(Arc::new(StoreDurability::new(
                Arc::clone(store),
                self.max_concurrent_dispatches,
            )) as Arc<dyn Durability>),
        };
        let env = Arc::new(WorkerEnv {
            secret: domain.token_hex(32),
            domain,
            lease,
            shared: self.shared,
            placements: self.placements,
            durability,
            store,
            transport: OnceLock::new(),
        });
        let hosts = Arc::new(Hosts::new(attach(
            &self.mounts,
            self.hostname.as_deref(),
            &env,
        )?));
        // Nothing else has seen this environment yet.
        let _ = env.transport.set(Arc::new(LocalTransport::new(&hosts)));
        Ok(PinnedWorker {
            core: Arc::new(WorkerCore {
                drains: parking_lot::Mutex::default(),
                process: Process::new(env.domain.monotonic()),
                settings: Settings {
                    address,
                    drain_deadline: self.drain_deadline,
                },
                extra: self.extra,
                #[cfg(feature = "metrics")]
                metrics: self
                    .metrics
                    .then(super::metrics::Exporter::install)
                    .transpose()?,
                env,
                hosts,
            }),
        })
    }
}

fn attach(
    mounts: &[(Blueprint, HostOptions)],
    hostname: Option<&str>,
    env: &Arc<WorkerEnv>,
) -> Result<Vec<Arc<Host>>> {
    let mut types: HashMap<String, &'static str> = HashMap::new();
    let mut hosts = Vec::with_capacity(mounts.len());
    for (blueprint, options) in mounts {
        let namespace = options
            .namespace
            .clone()
            .or_else(|| blueprint.namespace.map(str::to_owned))
            .ok_or_else(|| {
                Error::config(format!(
                    "{} has no namespace: name one in `#[pinned_api(\"/namespace\")]` or in its `HostOptions`",
                    blueprint.type_name
                ))
            })?;
        if let Some(reason) = pinned_wire::ids::invalid_namespace_reason(&namespace) {
            return Err(Error::config(format!("namespace {namespace:?}: {reason}")));
        }
        if let Some(known) = types.insert(namespace.clone(), blueprint.type_name) {
            return Err(Error::DuplicateNamespace(format!(
                "two structs claim the namespace {namespace:?}: {known} and {}",
                blueprint.type_name
            )));
        }
        let resolved = options
            .resolve(&blueprint.options)
            .map_err(|error| Error::config(format!("{namespace}: {error}")))?;
        if resolved.env.is_some() && hostname.is_none() {
            return Err(Error::config(format!(
                "{namespace}: `env` needs a worker hostname (`WorkerBuilder::hostname`)"
            )));
        }
        hosts.push(Host::new(
            &namespace,
            resolved,
            *blueprint,
            Arc::clone(env),
        )?);
    }
    Ok(hosts)
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
