//! The service behind the routes of workers.

use std::sync::Arc;

use pinned_domain::ErrorChain;
use tokio::sync::Semaphore;

use super::register::Refused;
use super::survivors::Survivors;
use super::{Registry, RegistryError};
use crate::passport::Resolve;

/// How much of long registrations is worked on at once, in MiB of their bodies; read, they take several times as much.
const LONG_REGISTRATIONS: usize = 96;

/// What a [`Sessions`] is made of.
#[derive(Clone)]
pub struct SessionsOptions {
    /// What this node knows and whom it asks.
    pub registry: Registry,
    /// Finds out the addresses of workers that advertise names.
    pub resolver: Arc<dyn Resolve>,
}

/// What workers ask of the registry (P2): [`register`](Self::register), [`heartbeat`](Self::heartbeat),
/// [`release`](Self::release), [`deregister`](Self::deregister).
///
/// Each takes the caller, whose token and scope have been checked, and a body that has been read by [`bodies`](super::bodies).
pub struct Sessions {
    pub(super) registry: Registry,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) survivors: Survivors,
    pub(super) refused: Refused,
    pub(super) rooms: Arc<Semaphore>,
}

impl Sessions {
    /// A service.
    #[must_use]
    pub fn new(options: SessionsOptions) -> Arc<Self> {
        Arc::new(Self {
            registry: options.registry,
            resolver: options.resolver,
            survivors: Survivors::default(),
            refused: Refused::default(),
            rooms: Arc::new(Semaphore::new(LONG_REGISTRATIONS)),
        })
    }

    /// What it works with.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

/// What a caller is told of a task of ours that did not end by itself.
pub(crate) fn task_failed(error: &pinned_domain::TaskError) -> RegistryError {
    if error.is_cancelled() {
        // The runtime is going away, and this node with it.
        return RegistryError::Unavailable("this node is stopping".to_owned());
    }
    tracing::error!(error = %ErrorChain(error), "a call failed");
    RegistryError::Internal
}
