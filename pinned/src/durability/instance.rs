//! The durable side of one activation, on a store (D18).

use std::fmt;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use tokio::sync::Semaphore;

use super::claim::InstanceKey;
use super::frontier::{Frontier, FrontierOwner};
use super::seam::{Durability, EffectLog};
use super::store::StateStore;
use crate::error::BoxError;

/// What a worker's store is to its hosts.
pub(crate) struct StoreDurability {
    store: Arc<dyn StateStore>,
    /// The limiter of tray dispatches across every host (T11.1).
    slots: Arc<Semaphore>,
}

impl StoreDurability {
    pub(crate) fn new(store: Arc<dyn StateStore>, max_dispatches: usize) -> Self {
        Self {
            store,
            slots: Arc::new(Semaphore::new(max_dispatches)),
        }
    }
}

impl Durability for StoreDurability {
    fn open(&self, namespace: &str, id: &str, epoch: u64) -> Arc<dyn EffectLog> {
        let instance = InstanceKey::new(namespace, id);
        Arc::new(StoreLog {
            frontier: Frontier::new(Arc::clone(&self.store), instance, epoch),
            slots: Arc::clone(&self.slots),
        })
    }
}

/// The instance that a log belongs to.
#[doc(hidden)]
pub struct LogOwner(pub(crate) Weak<dyn FrontierOwner>);

/// The durable side of one activation.
#[doc(hidden)]
pub struct StoreLog {
    frontier: Frontier,
    slots: Arc<Semaphore>,
}

impl StoreLog {
    pub(crate) fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    pub(crate) fn slots(&self) -> &Arc<Semaphore> {
        &self.slots
    }
}

impl EffectLog for StoreLog {
    fn attach(&self, owner: LogOwner) {
        self.frontier.attach(owner.0);
    }

    fn stored(&self) -> Option<&StoreLog> {
        Some(self)
    }

    fn advance_epoch(&self, epoch: u64) {
        self.frontier.advance_epoch(epoch);
    }

    fn wait(&self) -> BoxFuture<'static, Result<(), BoxError>> {
        self.frontier.wait().map_err(Into::into).boxed()
    }

    fn dispose(&self) {
        self.frontier.close();
    }
}

impl fmt::Debug for StoreLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreLog").field(&self.frontier).finish()
    }
}
