//! Starting and stopping a worker's hosts.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use super::PinnedWorker;
use super::probe::{Ask, Watchdog, keep_asking};
use super::service::WorkerService;
use crate::error::{Error, Result};
use crate::host::core::Service;

/// A worker whose hosts run. Dropping it aborts every instance without waiting; [`RunningWorker::shutdown`] waits.
#[must_use = "dropping it aborts every instance"]
pub struct RunningWorker {
    worker: PinnedWorker,
    stopped: bool,
    /// Brings back instances with durable work.
    resumer: Option<Chore>,
    /// Asks the worker's own router.
    _asking: Option<Chore>,
    watchdog: Option<Watchdog>,
    #[cfg(feature = "metrics")]
    _upkeep: Option<Chore>,
}

/// A task that runs for as long as this is held.
struct Chore(crate::domain::TaskHandle<()>);

impl Drop for Chore {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PinnedWorker {
    /// Starts the hosts, for a program that serves [`PinnedWorker::into_router`] itself.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyStarted`]; what runs is not disturbed (H11.14). [`Error::Store`] when the state store cannot be
    /// opened, or is in use by another worker; [`Error::Bind`] when probes cannot be answered where they are to be.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing runs before it resolves.
    pub async fn run_lifespan(&self) -> Result<RunningWorker> {
        self.run_asking(WorkerService::beside(self)).await
    }

    /// As [`PinnedWorker::run_lifespan`], with a self-probe that asks `service`.
    pub(super) async fn run_asking(&self, service: WorkerService) -> Result<RunningWorker> {
        if self
            .each_host()
            .any(|host| host.service() != Service::NotStarted)
        {
            return Err(Error::AlreadyStarted);
        }
        self.open_store().await?;
        // The last thing that can fail, so that nothing runs when it does.
        let watchdog = self.watchdog()?;
        for host in self.each_host() {
            host.start()?;
        }
        if self.core.env.placements.is_none() {
            tracing::warn!(
                target: "pinned::worker",
                "DEV MODE: no control plane; nothing keeps a second worker from serving the same ids"
            );
        }
        self.core.fleet.start();
        Ok(RunningWorker {
            worker: self.clone(),
            stopped: false,
            resumer: self.resumer(),
            _asking: self.asking(service),
            watchdog,
            #[cfg(feature = "metrics")]
            _upkeep: self.core.metrics.clone().map(|exporter| {
                let domain = self.domain();
                Chore(domain.spawn(exporter.keep_up(domain.clone())))
            }),
        })
    }

    fn watchdog(&self) -> Result<Option<Watchdog>> {
        let core = &self.core;
        let settings = &core.settings;
        let probes = settings.probe_address.map(|at| (at, self.probes()));
        Watchdog::start(
            self.domain(),
            &core.health,
            settings.probing.as_ref(),
            probes,
        )
    }

    fn asking(&self, service: WorkerService) -> Option<Chore> {
        let probing = self.core.settings.probing.clone()?;
        let ask: Ask = Arc::new(move || Box::pin(service.ask_itself()));
        let health = Arc::clone(&self.core.health);
        let task = keep_asking(self.domain().clone(), health, probing, ask);
        Some(Chore(self.domain().spawn(task)))
    }

    /// With a control plane, that is what wakes instances.
    fn resumer(&self) -> Option<Chore> {
        if self.core.env.placements.is_some() {
            return None;
        }
        let store = Arc::clone(self.core.env.store.as_ref()?);
        let task = super::resume::run(self.clone(), store);
        Some(Chore(self.domain().spawn(task)))
    }

    /// Opens the state store before anything is served from it.
    async fn open_store(&self) -> Result<()> {
        let Some(store) = &self.core.env.store else {
            return Ok(());
        };
        store.setup().await?;
        if self.core.env.placements.is_none() {
            // Nobody fences two workers against each other here.
            store.hold_alone().await?;
        }
        Ok(())
    }

    /// Aborts every instance, without waiting.
    pub fn abort_all(&self) {
        for host in self.each_host() {
            host.abort_all();
        }
    }
}

impl RunningWorker {
    /// The worker.
    pub fn worker(&self) -> &PinnedWorker {
        &self.worker
    }

    /// Where probes are answered beside the runtime, if [they are](crate::WorkerBuilder::probe_address).
    pub fn probe_address(&self) -> Option<SocketAddr> {
        self.watchdog.as_ref()?.address()
    }

    /// Closes every instance, in order, and waits until nothing of any is left (H11.11).
    ///
    /// # Errors
    ///
    /// [`Error::Shutdown`] when the durable effects of instances could not be confirmed; every instance is gone all the
    /// same.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the wait; the closes go on.
    pub async fn shutdown(mut self) -> Result<()> {
        self.stopped = true;
        self.resumer = None;
        for host in self.worker.each_host() {
            host.stop_service();
        }
        self.worker.abort_all();
        let mut failures = Vec::new();
        for host in self.worker.each_host() {
            host.wait_empty().await;
            let failed = host.take_failures();
            if !failed.is_empty() {
                metrics::counter!("pinned_shutdown_failures_total", "phase" => "directory")
                    .increment(1);
            }
            failures.extend(failed);
        }
        // Once nothing is left that the session would have to answer for (W1.5).
        self.worker.core.fleet.stop().await;
        let env = &self.worker.core.env;
        env.lease.close();
        if let Some(store) = &env.store {
            store.let_go();
        }
        if failures.is_empty() {
            Ok(())
        } else {
            Err(Error::Shutdown(failures))
        }
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        if !self.stopped {
            for host in self.worker.each_host() {
                host.stop_service();
                host.abort_all();
            }
            self.worker.core.fleet.abort();
        }
    }
}

impl fmt::Debug for RunningWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunningWorker").field(&self.worker).finish()
    }
}
