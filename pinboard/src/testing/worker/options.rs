//! What a worker is told before it starts.

use std::sync::Arc;
use std::time::Duration;

use super::handler::{Counters, WorkerHandler};
use super::log::ActivationLog;

/// What a [`ScriptedWorker`](super::ScriptedWorker) is made of. The defaults are those of a worker of the published edition,
/// with one namespace `/counters`.
#[derive(Clone)]
#[must_use = "options are for a `ScriptedWorker`"]
pub struct WorkerOptions {
    pub(super) name: Arc<str>,
    pub(super) namespaces: Vec<Arc<str>>,
    pub(super) advertise_url: String,
    pub(super) headroom: u64,
    pub(super) heartbeat_interval: Duration,
    pub(super) lease_buffer: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) max_instances: usize,
    pub(super) names_every_refusal: bool,
    pub(super) log: ActivationLog,
    pub(super) handler: Arc<dyn WorkerHandler>,
}

impl WorkerOptions {
    /// A worker that the log calls `name`, and that is reached at `advertise_url`.
    pub fn new(name: impl Into<Arc<str>>, advertise_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespaces: vec!["/counters".into()],
            advertise_url: advertise_url.into(),
            headroom: 1024,
            heartbeat_interval: Duration::from_secs(3),
            lease_buffer: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(300),
            max_instances: usize::MAX,
            names_every_refusal: true,
            log: ActivationLog::new(),
            handler: Arc::new(Counters::new()),
        }
    }

    /// The namespaces that it serves.
    pub fn namespaces<N: Into<Arc<str>>>(
        mut self,
        namespaces: impl IntoIterator<Item = N>,
    ) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Its free memory, in MiB; see [`Knobs::headroom`](super::Knobs::headroom) for later.
    pub fn headroom(mut self, mib: u64) -> Self {
        self.headroom = mib;
        self
    }

    /// From heartbeat to heartbeat, and how long before the end of its lease it activates nothing new. Both must fit the lease
    /// TTL of the fleet.
    pub fn pace(mut self, heartbeat_interval: Duration, lease_buffer: Duration) -> Self {
        self.heartbeat_interval = heartbeat_interval;
        self.lease_buffer = lease_buffer;
        self
    }

    /// How long an instance stays that nobody asks for anything.
    pub fn idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = idle_timeout;
        self
    }

    /// How many instances it has at most.
    pub fn max_instances(mut self, max_instances: usize) -> Self {
        self.max_instances = max_instances;
        self
    }

    /// Has it name `lease-unhealthy` alone in `pinned-refusal`, and not say that its lease had passed when it registers, as the
    /// published Python edition does (P5.9).
    pub fn names_lease_unhealthy_alone(mut self) -> Self {
        self.names_every_refusal = false;
        self
    }

    /// The log that its activations go to, shared with other workers.
    pub fn log(mut self, log: ActivationLog) -> Self {
        self.log = log;
        self
    }

    /// What its instances do.
    pub fn handler(mut self, handler: impl WorkerHandler) -> Self {
        self.handler = Arc::new(handler);
        self
    }
}
