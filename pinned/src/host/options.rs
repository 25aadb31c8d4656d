//! The options of a host (H16.1).

use std::time::Duration;

use crate::api::definition::DeclaredOptions;
use crate::domain::FAR_FUTURE;
use crate::error::Error;

/// How instances of one namespace are hosted.
///
/// What is set here wins over the options of the struct's `#[pinned_api]` attribute, which win over the defaults.
///
/// ```
/// use std::time::Duration;
/// use pinned::HostOptions;
///
/// let options = HostOptions::new()
///     .namespace("/rooms")
///     .idle_timeout(Duration::from_secs(60))
///     .max_instances(100_000);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until they are given to a host"]
pub struct HostOptions {
    pub(crate) namespace: Option<String>,
    env: Option<String>,
    idle_timeout: Option<Duration>,
    release_placement_on_idle: Option<bool>,
    detached_timeout: Option<Duration>,
    sweep_interval: Option<Duration>,
    max_instances: Option<usize>,
    max_concurrent_activations: Option<usize>,
    activation_queue_deadline: Option<Duration>,
    turn_timeout: Option<Duration>,
    max_waiting: Option<usize>,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $ty:ty;)*) => {
        $($(#[$doc])*
        pub fn $name(mut self, $name: $ty) -> Self {
            self.$name = Some($name);
            self
        })*
    };
}

impl HostOptions {
    /// Nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The namespace: `/` and one path segment. Needed for a struct whose attribute names none.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The data environment, when it differs from the worker's. Needs a worker hostname (H16.3).
    pub fn env(mut self, env: impl Into<String>) -> Self {
        self.env = Some(env.into());
        self
    }

    /// The namespace that was set, for harnesses that fall back to one of their own.
    #[doc(hidden)]
    pub fn chosen_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    setters! {
        /// How long an instance may be without work before it is evicted (300 s).
        idle_timeout: Duration;
        /// Whether an idle eviction hands the placement back (true). False keeps it here, at the same epoch (H13).
        release_placement_on_idle: bool;
        /// How long an instance may be without an open stream or WebSocket before it is wound down with no grace (24 h).
        detached_timeout: Duration;
        /// How often due evictions are looked for (5 s): the lateness of an idle eviction.
        sweep_interval: Duration;
        /// How many instances may be live at once (10,000).
        max_instances: usize;
        /// How many setups run at once; the rest queue (2).
        max_concurrent_activations: usize;
        /// How long a request waits for a queued activation to start (1 s).
        activation_queue_deadline: Duration;
        /// How long a request waits for its turn (30 s).
        turn_timeout: Duration;
        /// How many callers of one instance may wait for a turn (1,024); none with 0.
        max_waiting: usize;
    }

    pub(crate) fn resolve(&self, declared: &DeclaredOptions) -> Result<Resolved, Error> {
        let resolved = Resolved {
            env: self.env.clone().or_else(|| declared.env.map(str::to_owned)),
            idle_timeout: self
                .idle_timeout
                .or(declared.idle_timeout)
                .unwrap_or(Duration::from_secs(300)),
            release_placement_on_idle: self
                .release_placement_on_idle
                .or(declared.release_placement_on_idle)
                .unwrap_or(true),
            detached_timeout: self
                .detached_timeout
                .or(declared.detached_timeout)
                .unwrap_or(Duration::from_secs(86_400)),
            sweep_interval: self
                .sweep_interval
                .or(declared.sweep_interval)
                .unwrap_or(Duration::from_secs(5)),
            max_instances: self
                .max_instances
                .or(declared.max_instances)
                .unwrap_or(10_000),
            max_concurrent_activations: self
                .max_concurrent_activations
                .or(declared.max_concurrent_activations)
                .unwrap_or(2),
            activation_queue_deadline: self
                .activation_queue_deadline
                .or(declared.activation_queue_deadline)
                .unwrap_or(Duration::from_secs(1)),
            turn_timeout: self
                .turn_timeout
                .or(declared.turn_timeout)
                .unwrap_or(Duration::from_secs(30)),
            max_waiting: self.max_waiting.or(declared.max_waiting).unwrap_or(1_024),
        };
        resolved.check()?;
        Ok(resolved)
    }
}

/// Options with every default filled in.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) env: Option<String>,
    pub(crate) idle_timeout: Duration,
    pub(crate) release_placement_on_idle: bool,
    pub(crate) detached_timeout: Duration,
    pub(crate) sweep_interval: Duration,
    pub(crate) max_instances: usize,
    pub(crate) max_concurrent_activations: usize,
    pub(crate) activation_queue_deadline: Duration,
    pub(crate) turn_timeout: Duration,
    pub(crate) max_waiting: usize,
}

impl Resolved {
    fn check(&self) -> Result<(), Error> {
        let positive = [
            ("detached_timeout", self.detached_timeout),
            ("sweep_interval", self.sweep_interval),
            ("activation_queue_deadline", self.activation_queue_deadline),
            ("turn_timeout", self.turn_timeout),
        ];
        if let Some((option, _)) = positive.iter().find(|(_, value)| value.is_zero()) {
            return Err(Error::option(option, "must be longer than zero"));
        }
        let bounded = [
            ("idle_timeout", self.idle_timeout),
            ("detached_timeout", self.detached_timeout),
            ("sweep_interval", self.sweep_interval),
            ("activation_queue_deadline", self.activation_queue_deadline),
            ("turn_timeout", self.turn_timeout),
        ];
        if let Some((option, _)) = bounded.iter().find(|(_, value)| *value > FAR_FUTURE) {
            return Err(Error::option(option, "must be at most 30 years"));
        }
        let counts = [
            ("max_instances", self.max_instances),
            (
                "max_concurrent_activations",
                self.max_concurrent_activations,
            ),
        ];
        if let Some((option, _)) = counts.iter().find(|(_, value)| *value == 0) {
            return Err(Error::option(option, "must be at least 1"));
        }
        if self.max_concurrent_activations > tokio::sync::Semaphore::MAX_PERMITS {
            return Err(Error::option("max_concurrent_activations", "is too large"));
        }
        Ok(())
    }
}
