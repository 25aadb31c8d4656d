//! The durable side of an instance, as the host drives it.
//!
//! A store opens one [`EffectLog`] per live instance. The host moves its epoch, waits for it before a placement is
//! handed back, and disposes of it; what the log holds is the store's own affair.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::BoxError;

/// Opens the log of an instance: what a state store offers to a host.
pub trait Durability: Send + Sync + 'static {
    /// The log of `id` under `namespace`, whose writes carry `epoch`.
    fn open(&self, namespace: &str, id: &str, epoch: u64) -> Arc<dyn EffectLog>;
}

/// The ordered log of one instance's durable effects.
pub trait EffectLog: Send + Sync + 'static {
    /// Later writes carry `epoch` (H3.11). It never moves down.
    fn advance_epoch(&self, epoch: u64);

    /// Resolves once everything enlisted before the call is durable.
    ///
    /// # Errors
    ///
    /// The log has failed and can confirm nothing any more.
    fn wait(&self) -> BoxFuture<'static, Result<(), BoxError>>;

    /// The instance is gone: refuse what comes later and let go of what is held.
    fn dispose(&self);
}

/// An instance's view of its own log: `ctx.frontier()?.wait().await?` is the durable receipt (H15.1).
#[derive(Clone)]
pub struct Frontier(Arc<dyn EffectLog>);

impl Frontier {
    pub(crate) fn new(log: Arc<dyn EffectLog>) -> Self {
        Self(log)
    }

    /// Resolves once everything enlisted before the call is durable.
    ///
    /// # Errors
    ///
    /// The log has failed; what was enlisted may or may not be durable.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the wait alone; what was enlisted goes on.
    pub async fn wait(&self) -> Result<(), BoxError> {
        self.0.wait().await
    }
}

impl fmt::Debug for Frontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontier").finish_non_exhaustive()
    }
}

/// The worker has no state store, so there is neither a frontier nor a placement epoch to read (H12.8, H15.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this worker has no state store; give it one to use `frontier` and `placement_epoch`")]
pub struct NoStateStore;
