//! Putting a worker together.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::environment::Environment;
use super::fleet::Fleet;
use super::probe::{Health, SelfProbe};
use super::{PinnedWorker, Settings, WorkerCore, nothing_hosted, process::Process, store};
use crate::api::chain::OpenCalls;
use crate::api::definition::{Blueprint, PinnedApi};
use crate::api::state::SharedState;
use crate::domain::Domain;
use crate::durability::{Durability, StateStore, StoreDurability};
use crate::error::{Error, Result};
use crate::fleet::local::LocalTransport;
#[cfg(feature = "fleet")]
use crate::fleet::{
    self,
    http::HttpDataPlane,
    placements::FleetPlacements,
    registration::Registration,
    remote::Remote,
    settings::FleetSettings,
    transport::{ControlPlane, DataPlane},
};
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
    self_probe: SelfProbe,
    probe_address: Option<SocketAddr>,
    hostname: Option<String>,
    #[cfg(feature = "fleet")]
    fleet: FleetSettings,
    #[cfg(feature = "fleet")]
    control_plane: Option<Arc<dyn ControlPlane>>,
    #[cfg(feature = "fleet")]
    data_plane: Option<Arc<dyn DataPlane>>,
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

    /// Joins the fleet of the pinboard at `url` (`PINBOARD_URL`), which knows this worker by `token`
    /// (`PINBOARD_TOKEN`). Needs [`WorkerBuilder::advertise_url`].
    #[cfg(feature = "fleet")]
    pub fn pinboard(mut self, url: impl Into<String>, token: impl Into<String>) -> Self {
        self.fleet.url = Some(url.into());
        self.fleet.token = Some(pinned_wire::registry::Secret::new(token));
        self
    }

    /// Where pinboard reaches this worker (`ADVERTISE_URL`), such as `http://10.0.0.7:8000`.
    #[cfg(feature = "fleet")]
    pub fn advertise_url(mut self, url: impl Into<String>) -> Self {
        self.fleet.advertise_url = Some(url.into());
        self
    }

    /// The identity of the data of this worker, in hostname-aware mode; hosts may have another
    /// ([`HostOptions::env`]).
    #[cfg(feature = "fleet")]
    pub fn env(mut self, env: impl Into<String>) -> Self {
        self.fleet.env = Some(env.into());
        self
    }

    /// What a request from another hostname does to an id that lives here, in hostname-aware mode.
    #[cfg(feature = "fleet")]
    pub fn takeover(mut self, takeover: pinned_wire::registry::Takeover) -> Self {
        self.fleet.takeover = Some(takeover);
        self
    }

    /// The epoch of this deployment (0): a higher one displaces a lower one whose settings disagree.
    #[cfg(feature = "fleet")]
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.fleet.epoch = epoch;
        self
    }

    /// How often the control plane hears of this worker (3 s).
    #[cfg(feature = "fleet")]
    pub fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.fleet.heartbeat_interval = interval;
        self
    }

    /// How much memory is free, in MiB, asked before each heartbeat; by default what the control group and the
    /// machine have left. New ids go where there is more.
    #[cfg(feature = "fleet")]
    pub fn headroom(mut self, probe: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.fleet.headroom = Arc::new(probe);
        self
    }

    /// Reaches the control plane by other ways than HTTP: for tests that stand in for it. Needs
    /// [`WorkerBuilder::advertise_url`] all the same.
    #[cfg(feature = "fleet")]
    #[doc(hidden)]
    pub fn control_plane(mut self, plane: Arc<dyn ControlPlane>) -> Self {
        self.control_plane = Some(plane);
        self
    }

    /// Reaches instances of other workers by other ways than HTTP: for tests that stand in for the control plane.
    #[cfg(feature = "fleet")]
    #[doc(hidden)]
    pub fn data_plane(mut self, plane: Arc<dyn DataPlane>) -> Self {
        self.data_plane = Some(plane);
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
        let hostname = self
            .hostname
            .or_else(|| environment.hostname().map(str::to_owned));
        environment.check_mode()?;
        #[cfg(feature = "fleet")]
        let membership = {
            environment.fill_in(&mut self.fleet);
            let placed = self.fleet.url.is_some() || self.control_plane.is_some();
            self.fleet.check(hostname.as_deref(), placed)?;
            placed
                .then(|| self.fleet.membership(hostname.as_deref()))
                .transpose()?
        };
        #[cfg(feature = "fleet")]
        let is_placed = self.placements.is_some() || membership.is_some();
        #[cfg(not(feature = "fleet"))]
        let is_placed = self.placements.is_some();
        if !is_placed {
            Environment::of_process().guard_dev_mode()?;
        }
        let address = match self.address {
            Some(address) => address,
            None => {
                environment.address(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8000))?
            }
        };
        environment.fill_in_probe(&mut self.self_probe)?;
        let probing = self.self_probe.check()?;
        let probe_address = match self.probe_address {
            Some(probes) => Some(probes),
            None => environment.probe_address(address.ip())?,
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
        let secret = domain.token_hex(32);
        #[cfg(feature = "fleet")]
        let (registration, client) = match membership {
            None => (None, None),
            Some(membership) => {
                // One for the registry and for calls: each would read the system's certificates.
                let client = fleet::http::client()?;
                let plane = match self.control_plane {
                    Some(plane) => plane,
                    None => self.fleet.connect(client.clone())?,
                };
                let registration = Registration::new(membership, &secret, &domain, &lease, plane);
                (Some(registration), Some(client))
            }
        };
        #[cfg(feature = "fleet")]
        if let Some(registration) = &registration {
            let placements = Arc::new(FleetPlacements(Arc::clone(registration)));
            self.placements.get_or_insert(placements);
        }
        let env = Arc::new(WorkerEnv {
            secret,
            calls: Arc::new(OpenCalls::new(&domain)),
            domain,
            lease,
            shared: self.shared,
            placements: self.placements,
            durability,
            store,
            transport: OnceLock::new(),
        });
        let hosts = Arc::new(Hosts::new(attach(&self.mounts, hostname.as_deref(), &env)?));
        #[cfg(feature = "fleet")]
        let fleet = Fleet::new(registration.clone().inspect(|known| known.attach(&hosts)));
        #[cfg(not(feature = "fleet"))]
        let fleet = Fleet::default();
        let transport = LocalTransport::new(&hosts);
        #[cfg(feature = "fleet")]
        let data_plane = self.data_plane.or_else(|| {
            let plane = HttpDataPlane::new(client?, self.fleet.url.as_deref()?);
            Some(Arc::new(plane))
        });
        #[cfg(feature = "fleet")]
        let transport =
            transport.with_remote(data_plane.zip(registration).map(|(plane, registration)| {
                let calls = Arc::clone(&env.calls);
                Remote::new(plane, hostname.as_deref(), registration, calls)
            }));
        // Nothing else has seen this environment yet.
        let _ = env.transport.set(Arc::new(transport));
        Ok(PinnedWorker {
            core: Arc::new(WorkerCore {
                fleet,
                process: Process::new(env.domain.monotonic()),
                health: Arc::new(Health::new()),
                settings: Settings {
                    address,
                    drain_deadline: self.drain_deadline,
                    probing,
                    probe_address,
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
