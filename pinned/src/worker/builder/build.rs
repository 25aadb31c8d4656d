//! From what is asked for to a worker: whatever contradicts itself is refused here, before anything runs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use pinned_wire::attestation::TokenKey;
use tokio::sync::Semaphore;

use super::WorkerBuilder;
use super::mounts::{attach, nothing_hosted};
use crate::api::chain::OpenCalls;
use crate::domain::Domain;
use crate::durability::{Durability, StateStore, StoreDurability};
use crate::error::{Error, Result};
use crate::fleet::local::LocalTransport;
#[cfg(feature = "fleet")]
use crate::fleet::placements::FleetPlacements;
use crate::host::env::WorkerEnv;
use crate::host::hosts::Hosts;
use crate::host::options::HostOptions;
use crate::host::tokens::RecentTokens;
use crate::lease::{Lease, LeaseSettings};
use crate::worker::environment::Environment;
use crate::worker::fleet::Fleet;
use crate::worker::probe::Health;
use crate::worker::process::Process;
use crate::worker::{PinnedWorker, Settings, WorkerCore, store};

impl WorkerBuilder {
    /// Checks everything and makes the worker.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] and [`Error::DuplicateNamespace`], with what is expected.
    pub fn build(mut self) -> Result<PinnedWorker> {
        self.mount_registry()?;
        let environment = self.environment.take().unwrap_or_default();
        let named = self.hostname.take();
        let hostname = named.or_else(|| environment.hostname().map(str::to_owned));
        let hostname = hostname.as_deref();
        environment.check_mode()?;
        #[cfg(feature = "fleet")]
        let membership = self.membership(&environment, hostname)?;
        #[cfg(feature = "fleet")]
        let is_placed = self.placements.is_some() || membership.is_some();
        #[cfg(not(feature = "fleet"))]
        let is_placed = self.placements.is_some();
        if !is_placed {
            Environment::of_process().guard_dev_mode()?;
        }
        let settings = self.settings(&environment)?;
        let domain = self.domain.take().unwrap_or_else(Domain::real);
        let lease = self.lease(&domain)?;
        let store = self.chosen_store(&environment, &domain)?;
        let durability = self.durable_side(store.as_ref());
        let secret = domain.token_hex(32);
        #[cfg(feature = "fleet")]
        let joined = membership
            .map(|membership| self.join(membership, &secret, &domain, &lease))
            .transpose()?;
        #[cfg(feature = "fleet")]
        let registration = joined
            .as_ref()
            .map(|joined| Arc::clone(&joined.registration));
        #[cfg(feature = "fleet")]
        if let Some(registration) = &registration {
            let placements = Arc::new(FleetPlacements(Arc::clone(registration)));
            self.placements.get_or_insert(placements);
        }
        let env = Arc::new(WorkerEnv {
            key: TokenKey::new(&secret),
            secret,
            recent: RecentTokens::default(),
            calls: Arc::new(OpenCalls::new(&domain)),
            domain,
            lease,
            shared: std::mem::take(&mut self.shared),
            placements: self.placements.take(),
            durability,
            store,
            transport: OnceLock::new(),
        });
        let hosts = Arc::new(Hosts::new(attach(&self.mounts, hostname, &env)?));
        #[cfg(feature = "fleet")]
        let fleet = Fleet::new(registration.inspect(|known| known.attach(&hosts)));
        #[cfg(not(feature = "fleet"))]
        let fleet = Fleet::default();
        let transport = LocalTransport::new(&hosts);
        #[cfg(feature = "fleet")]
        let transport = transport.with_remote(match joined {
            Some(joined) => self.remote(joined, hostname, &env.calls)?,
            None => None,
        });
        // Nothing else has seen this environment yet.
        let _ = env.transport.set(Arc::new(transport));
        Ok(PinnedWorker {
            core: Arc::new(WorkerCore {
                fleet,
                process: Process::new(env.domain.monotonic()),
                health: Arc::new(Health::new()),
                settings,
                extra: self.extra,
                #[cfg(feature = "metrics")]
                metrics: self
                    .metrics
                    .then(crate::worker::metrics::Exporter::install)
                    .transpose()?,
                env,
                hosts,
            }),
        })
    }

    /// Adds what the registry has to what is mounted by hand.
    fn mount_registry(&mut self) -> Result<()> {
        if let Some(registry) = self.registry {
            let found = registry()?.into_iter();
            self.mounts
                .extend(found.map(|blueprint| (blueprint, HostOptions::new())));
        }
        if self.mounts.is_empty() {
            return Err(nothing_hosted());
        }
        Ok(())
    }

    /// What concerns the process.
    fn settings(&mut self, environment: &Environment) -> Result<Settings> {
        let address = match self.address {
            Some(address) => address,
            None => {
                environment.address(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8000))?
            }
        };
        environment.fill_in_probe(&mut self.self_probe)?;
        let probing = std::mem::take(&mut self.self_probe).check()?;
        let probe_address = match self.probe_address {
            Some(probes) => Some(probes),
            None => environment.probe_address(address.ip())?,
        };
        Ok(Settings {
            address,
            drain_deadline: self.drain_deadline,
            probing,
            probe_address,
        })
    }

    fn lease(&self, domain: &Domain) -> Result<Lease> {
        let lease = Lease::new(domain.clone());
        if let Some(buffer) = self.lease_buffer {
            lease
                .configure(LeaseSettings::new().buffer(buffer))
                .map_err(|error| Error::config(error.to_string()))?;
        }
        Ok(lease)
    }

    /// The state store, if it was given here or anything that is mounted keeps state.
    fn chosen_store(
        &mut self,
        environment: &Environment,
        domain: &Domain,
    ) -> Result<Option<Arc<dyn StateStore>>> {
        if self.max_concurrent_dispatches == 0
            || self.max_concurrent_dispatches > Semaphore::MAX_PERMITS
        {
            return Err(Error::option("max_concurrent_dispatches", "is at least 1"));
        }
        let needs_store = self
            .mounts
            .iter()
            .any(|(blueprint, _)| (blueprint.needs_store)());
        match (self.store.take(), needs_store && self.durability.is_none()) {
            (Some(store), _) => Ok(Some(store)),
            (None, true) => Ok(Some(store::named(environment.store(), domain)?)),
            (None, false) => Ok(None),
        }
    }

    /// What stands between instances and `store`.
    fn durable_side(&mut self, store: Option<&Arc<dyn StateStore>>) -> Option<Arc<dyn Durability>> {
        match store {
            None => self.durability.take(),
            Some(store) => Some(Arc::new(StoreDurability::new(
                Arc::clone(store),
                self.max_concurrent_dispatches,
            ))),
        }
    }
}
