//! An instance's view of the worker's lease and of its own wind-down (H15.2).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::seam::Seam;
use crate::lease::{LeaseSettings, ZeroBuffer};

/// A wind-down callback: the deadline as wall time, or `None` when there is none (any more).
pub(crate) type WindDownHook = Arc<dyn Fn(Option<SystemTime>) + Send + Sync>;
/// An idle callback.
pub(crate) type IdleHook = Arc<dyn Fn() + Send + Sync>;

/// The callbacks of one instance.
#[derive(Clone, Default)]
pub(crate) struct LeaseHooks {
    pub(crate) on_wind_down: Option<WindDownHook>,
    pub(crate) on_idle: Option<IdleHook>,
}

/// The lease as one instance sees it: the worker's health, and this instance's own wind-down.
///
/// ```
/// # async fn demo(ctx: pinned::Context) {
/// let lease = ctx.lease();
/// if lease.winding_down() {
///     println!("gone by {:?}", lease.eviction_deadline());
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct InstanceLease {
    seam: Seam,
}

impl InstanceLease {
    pub(crate) fn new(seam: Seam) -> Self {
        Self { seam }
    }

    /// Whether the worker's lease is further than `buffer` from its end. Always true without a control plane.
    pub fn healthy(&self) -> bool {
        self.seam.worker_lease().healthy()
    }

    /// Whether the worker's lease has ended; nothing is served then.
    pub fn expired(&self) -> bool {
        self.seam.worker_lease().expired()
    }

    /// When the worker's lease ends; `None` before the first acknowledgement.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.seam.worker_lease().expires_at()
    }

    /// The margin before the end of the lease at which it turns unhealthy.
    pub fn buffer(&self) -> Duration {
        self.seam.worker_lease().buffer()
    }

    /// Whether anything asks this instance to wind down (H10.1).
    pub fn winding_down(&self) -> bool {
        self.seam.winding_down()
    }

    /// The earliest deadline of those in force; `None` when not winding down, or when no source has one.
    pub fn eviction_deadline(&self) -> Option<SystemTime> {
        let at = self.seam.eviction_deadline()?;
        Some(self.seam.domain().wall_time(at))
    }

    /// Asks this very instance to wind down: it closes once idle, and is cut off after `deadline` if there is one.
    ///
    /// It cannot be revoked; a repeated call keeps the earliest deadline, and one without a deadline loosens none
    /// (H10.2). A handle of an instance that was replaced does nothing to its successor.
    pub fn wind_down(&self, deadline: Option<Duration>) {
        Arc::clone(&self.seam).wind_down(deadline);
    }

    /// Sets what is named and leaves the rest.
    ///
    /// `buffer`, `on_unhealthy` and `on_restored` act on the whole worker, where the last setter wins; `on_wind_down`
    /// and `on_idle` are this instance's own.
    ///
    /// # Errors
    ///
    /// [`ZeroBuffer`] when `buffer` is zero; nothing is changed then.
    pub fn configure(&self, settings: InstanceLeaseSettings) -> Result<(), ZeroBuffer> {
        self.seam.worker_lease().configure(settings.worker)?;
        self.seam.configure_hooks(settings.hooks);
        Ok(())
    }
}

impl fmt::Debug for InstanceLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceLease")
            .field("id", &self.seam.id())
            .field("healthy", &self.healthy())
            .field("winding_down", &self.winding_down())
            .finish_non_exhaustive()
    }
}

/// Settings for [`InstanceLease::configure`].
///
/// ```
/// use pinned::InstanceLeaseSettings;
///
/// let settings = InstanceLeaseSettings::new()
///     .on_wind_down(|deadline| println!("winding down, gone by {deadline:?}"))
///     .on_idle(|| println!("idle; kept"));
/// # let _ = settings;
/// ```
#[derive(Default)]
#[must_use = "settings do nothing until they are given to `configure`"]
pub struct InstanceLeaseSettings {
    worker: LeaseSettings,
    hooks: LeaseHooks,
}

impl InstanceLeaseSettings {
    /// Nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The margin at which the worker's lease turns unhealthy (5 s).
    pub fn buffer(mut self, buffer: Duration) -> Self {
        self.worker = self.worker.buffer(buffer);
        self
    }

    /// Called when the worker's lease turns unhealthy.
    pub fn on_unhealthy(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.worker = self.worker.on_unhealthy(hook);
        self
    }

    /// Called when the worker's lease is acknowledged again after that.
    pub fn on_restored(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.worker = self.worker.on_restored(hook);
        self
    }

    /// Called whenever this instance's wind-down is set, tightened, loosened or revoked (H10.10).
    ///
    /// A change that came before the callback was set is not replayed: look at
    /// [`InstanceLease::winding_down`] after setting it (H10.11).
    pub fn on_wind_down(
        mut self,
        hook: impl Fn(Option<SystemTime>) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.on_wind_down = Some(Arc::new(hook));
        self
    }

    /// Called instead of the close when this instance has been idle for `idle_timeout`, once per idle spell; the
    /// instance stays (H8.5). A wind-down closes it all the same.
    pub fn on_idle(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_idle = Some(Arc::new(hook));
        self
    }
}

impl fmt::Debug for InstanceLeaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceLeaseSettings")
            .field("on_wind_down", &self.hooks.on_wind_down.is_some())
            .field("on_idle", &self.hooks.on_idle.is_some())
            .finish_non_exhaustive()
    }
}
