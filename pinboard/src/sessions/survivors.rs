//! Workers that outlived a dev node (P4.4).

use std::sync::atomic::{AtomicBool, Ordering};

use pinned_domain::ErrorChain;

use super::{Registry, entry};
use crate::store::{EventKind, StoreError};

/// Whether this dev node has learned that workers outlived it.
///
/// A dev node keeps its quarantine short, as most often it starts before its workers. When a worker turns up with a session from
/// before, there may be more of them, with ids that must not be placed elsewhere: then it lasts the whole lease TTL.
#[derive(Debug, Default)]
pub(crate) struct Survivors {
    noted: AtomicBool,
}

impl Survivors {
    /// A worker has turned up with a session that the store does not know.
    pub(crate) async fn note(&self, registry: &Registry) {
        if !registry.settings.dev || self.noted.load(Ordering::Relaxed) {
            return;
        }
        match self.extend(registry).await {
            Ok(()) => {}
            // The next heartbeat of any of them tries again.
            Err(error) => tracing::warn!(
                error = %ErrorChain(&error),
                "the quarantine could not be made longer"
            ),
        }
    }

    async fn extend(&self, registry: &Registry) -> Result<(), StoreError> {
        // Once it is over, ids have been placed, and a new one would protect nothing.
        let stands = registry.store.quarantine().await?.is_some();
        if stands {
            let whole = registry.settings.lease_ttl;
            registry.store.extend_quarantine(whole).await?;
            tracing::info!(
                seconds = whole.as_secs_f64(),
                "workers outlived this node: nothing new is placed for a whole lease"
            );
            let mut event = entry(registry, EventKind::Quarantine);
            event.detail = Some("workers outlived the node".to_owned());
            registry.events.record(event);
        }
        // Only once: a worker that never stops asking must not keep it up for ever.
        self.noted.store(true, Ordering::Relaxed);
        Ok(())
    }
}
