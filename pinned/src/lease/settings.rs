//! What can be set on a lease.

use std::fmt;
use std::time::Duration;

use super::hooks::{Hook, HookOutcome};

/// A lease cannot have a buffer of zero: it would expire without having been unhealthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a lease buffer must be longer than zero")]
pub struct ZeroBuffer;

/// Changes to a lease, for [`Lease::configure`](super::Lease::configure); what is not named stays as it is.
///
/// ```
/// use std::time::Duration;
/// use pinned::{domain::Domain, lease::{Lease, LeaseSettings}};
///
/// # fn main() -> Result<(), pinned::lease::ZeroBuffer> {
/// let lease = Lease::new(Domain::real());
/// lease.configure(
///     LeaseSettings::new()
///         .buffer(Duration::from_secs(2))
///         .on_unhealthy(|| eprintln!("the control plane is not answering")),
/// )?;
/// assert_eq!(lease.buffer(), Duration::from_secs(2));
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "settings take effect when they are given to `Lease::configure`"]
pub struct LeaseSettings {
    pub(super) buffer: Option<Duration>,
    pub(super) on_unhealthy: Option<Hook>,
    pub(super) on_restored: Option<Hook>,
}

impl LeaseSettings {
    /// No change at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long before its deadline the lease turns unhealthy; more than zero.
    pub fn buffer(mut self, buffer: Duration) -> Self {
        self.buffer = Some(buffer);
        self
    }

    /// Called each time the lease turns unhealthy.
    ///
    /// Hooks must not block. They are called one at a time and in order; when one is slow enough that the health
    /// has changed and changed back meanwhile, neither change is called for.
    pub fn on_unhealthy<R: HookOutcome>(
        mut self,
        hook: impl Fn() -> R + Send + Sync + 'static,
    ) -> Self {
        self.on_unhealthy = Some(Hook::new("on_unhealthy", hook));
        self
    }

    /// Called when a renewal ends an unhealthy time; as [`on_unhealthy`](Self::on_unhealthy) otherwise.
    pub fn on_restored<R: HookOutcome>(
        mut self,
        hook: impl Fn() -> R + Send + Sync + 'static,
    ) -> Self {
        self.on_restored = Some(Hook::new("on_restored", hook));
        self
    }
}

impl fmt::Debug for LeaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseSettings")
            .field("buffer", &self.buffer)
            .field("on_unhealthy", &self.on_unhealthy.is_some())
            .field("on_restored", &self.on_restored.is_some())
            .finish()
    }
}
