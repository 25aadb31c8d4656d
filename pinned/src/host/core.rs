//! One namespace on one worker.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::runtime::Handle as Runtime;
use tokio::sync::{Notify, Semaphore};

use super::close::CloseKind;
use super::directory::Directory;
use super::env::WorkerEnv;
use super::metrics::HostMetrics;
use super::options::Resolved;
use super::routes::RouteTable;
use super::timers::Timers;
use super::wind_down::Drains;
use crate::api::definition::Blueprint;
use crate::domain::{TaskHandle, until};
use crate::error::Error;

/// One namespace on one worker: the directory of its instances, and all that governs them together.
pub(crate) struct Host {
    pub(crate) namespace: Arc<str>,
    pub(crate) options: Resolved,
    pub(crate) blueprint: Blueprint,
    pub(crate) routes: RouteTable,
    pub(crate) env: Arc<WorkerEnv>,
    pub(crate) metrics: HostMetrics,
    /// The audience of calls within this process (W8.6).
    pub(crate) audience: String,
    pub(super) directory: Directory,
    pub(super) timers: Timers,
    pub(super) drains: Mutex<Drains>,
    /// Whether any drain is set: the one word that requests look at.
    pub(super) draining: AtomicBool,
    pub(super) activations: Arc<Semaphore>,
    pub(super) counts: Counts,
    /// Told when a record leaves, a late release ends, or a drain begins.
    pub(super) changed: Notify,
    /// Durability failures of closes during the shutdown (H11.6).
    pub(super) failures: Mutex<Vec<String>>,
    /// Where closes run, whichever thread decides them.
    pub(super) runtime: OnceLock<Runtime>,
    service: AtomicU8,
    sweeper: Mutex<Option<TaskHandle<()>>>,
}

/// Counts since the start, for the stats (W10.3), and of what outlives its record.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) activations: AtomicU64,
    pub(super) evictions: AtomicU64,
    /// Releases that went on past their close (H11.7).
    pub(super) late_releases: AtomicU64,
}

/// Whether a host serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    NotStarted,
    Running,
    Stopped,
}

impl Host {
    pub(crate) fn new(
        namespace: &str,
        options: Resolved,
        blueprint: Blueprint,
        env: Arc<WorkerEnv>,
    ) -> Result<Arc<Self>, Error> {
        let routes = RouteTable::new(blueprint.routes, env.durability.is_some())?;
        let audience = env.domain.token_hex(16);
        Ok(Arc::new(Self {
            namespace: namespace.into(),
            activations: Arc::new(Semaphore::new(options.max_concurrent_activations)),
            metrics: HostMetrics::new(namespace),
            directory: Directory::new(),
            timers: Timers::new(env.domain.monotonic(), options.sweep_interval),
            drains: Mutex::new(Drains::default()),
            draining: AtomicBool::new(false),
            counts: Counts::default(),
            changed: Notify::new(),
            failures: Mutex::new(Vec::new()),
            runtime: OnceLock::new(),
            service: AtomicU8::new(Service::NotStarted as u8),
            sweeper: Mutex::new(None),
            audience,
            options,
            blueprint,
            routes,
            env,
        }))
    }

    /// The namespace without its slash.
    pub(crate) fn segment(&self) -> &str {
        &self.namespace[1..]
    }

    pub(crate) fn service(&self) -> Service {
        match self.service.load(Ordering::Acquire) {
            0 => Service::NotStarted,
            1 => Service::Running,
            _ => Service::Stopped,
        }
    }

    /// Begins to serve.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), Error> {
        self.service
            .compare_exchange(
                Service::NotStarted as u8,
                Service::Running as u8,
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .map_err(|_| Error::AlreadyStarted)?;
        if let Ok(runtime) = Runtime::try_current() {
            // The one start there is.
            let _ = self.runtime.set(runtime);
        }
        let sweeper = self.env.domain.spawn(super::sweep::run(Arc::clone(self)));
        *self.sweeper.lock() = Some(sweeper);
        Ok(())
    }

    /// Refuses whatever comes from here on, and stops sweeping (H11.11).
    pub(crate) fn stop_service(&self) {
        self.service
            .store(Service::Stopped as u8, Ordering::Release);
        if let Some(sweeper) = self.sweeper.lock().take() {
            sweeper.abort();
        }
    }

    /// Aborts every instance, without waiting.
    pub(crate) fn abort_all(&self) {
        for record in self.directory.records() {
            record.close(CloseKind::Cancelling);
        }
    }

    /// What went wrong in the closes of the shutdown.
    pub(crate) fn take_failures(&self) -> Vec<String> {
        std::mem::take(&mut self.failures.lock())
    }

    /// Whether no record, unfinished close or late release is left (H10.12).
    pub(crate) fn is_empty(&self) -> bool {
        self.directory.len() == 0 && self.counts.late_releases.load(Ordering::Acquire) == 0
    }

    pub(crate) async fn wait_empty(&self) {
        until(&self.changed, || self.is_empty()).await;
    }

    /// Waits until the host's own drain has left nothing, or is lifted, whatever a control plane asks for besides.
    pub(crate) async fn wait_drained(&self) {
        until(&self.changed, || {
            self.is_empty() || self.drains.lock().host.is_none()
        })
        .await;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Draining, and nothing left (H10.12).
    pub(crate) fn is_drained(&self) -> bool {
        self.is_draining() && self.directory.len() == 0
    }

    /// How many records there are, in any state.
    pub(crate) fn len(&self) -> usize {
        self.directory.len()
    }

    pub(crate) fn activation_count(&self) -> u64 {
        self.counts.activations.load(Ordering::Relaxed)
    }

    pub(crate) fn eviction_count(&self) -> u64 {
        self.counts.evictions.load(Ordering::Relaxed)
    }
}

/// What a control plane asks of a host.
#[cfg(feature = "fleet")]
impl Host {
    /// Whether the id that a raw path segment spells has a record, in whatever state.
    pub(crate) fn has(&self, segment: &str) -> bool {
        super::head::valid_id(segment).is_ok_and(|id| self.directory.get(&id).is_some())
    }

    /// Aborts one instance, without waiting; an unknown id is no error.
    pub(crate) fn abort(&self, id: &str) {
        if let Some(record) = self.directory.get(id) {
            record.close(CloseKind::Cancelling);
        }
    }

    /// The ids of all records, in whatever state.
    pub(crate) fn ids(&self) -> Vec<String> {
        let records = self.directory.records();
        records
            .iter()
            .map(|record| record.id().to_owned())
            .collect()
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("namespace", &self.namespace)
            .field("type", &self.blueprint.type_name)
            .field("instances", &self.len())
            .finish_non_exhaustive()
    }
}
