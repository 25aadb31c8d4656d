//! What the suite asks of whoever runs it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinned_domain::Domain;

use crate::store::{RegistryStore, StoreOptions};

/// Makes the stores that the suite checks.
pub trait RegistryHarness: Send + Sync {
    /// The world that the stores live in: the suite waits by its clock, and spawns on it.
    fn domain(&self) -> Domain;

    /// Whether waiting costs nothing. Where it does, leases are short, and what takes days is left out.
    fn virtual_time(&self) -> bool;

    /// A store in which nothing was ever kept, for one fleet of nodes that agree on `options`.
    ///
    /// The suite is done with a fleet before it asks for the next, so all may be one store that is emptied. It has not
    /// been asked for anything yet: the first operation of the suite is the first that it sees.
    fn fleet(&self, options: StoreOptions) -> BoxFuture<'_, Box<dyn RegistryFleet>>;
}

/// One store, and handles to it.
pub trait RegistryFleet: Send + Sync {
    /// The handle of one more node: with connections, memories and invalidations of its own.
    fn node(&self) -> BoxFuture<'_, Arc<dyn RegistryStore>>;

    /// Has the store lose everything, while the handles stay (P12.1).
    fn wipe(&self) -> BoxFuture<'_, ()>;

    /// Takes a copy of everything for [`restart_from_copy`](Self::restart_from_copy); `false` when there is no such thing,
    /// and the checks that need it are left out.
    fn copy(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    /// Restarts the store with what the latest copy has, while the handles stay; returns once they work again.
    fn restart_from_copy(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
