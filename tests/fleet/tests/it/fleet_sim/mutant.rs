//! Deliberate breaks, which must be found out.

use std::time::Duration;

use futures_util::FutureExt as _;
use pinboard::store::{MemoryStore, RegistryStore as _, Release};
use pinboard::testing::{StoreFaults, StoreOp};

/// A fleet that breaks a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// Whoever wants an id gets it, whether its holder lives or not.
    TakesFromTheLiving,
    /// A store that lost everything gives ids out at once, while their holders live (P4.4).
    HasNoQuarantine,
    /// Workers acknowledge writes that they do not make.
    ForgetsWrites,
}

impl Mutant {
    pub(super) const ALL: [Self; 3] = [
        Self::TakesFromTheLiving,
        Self::HasNoQuarantine,
        Self::ForgetsWrites,
    ];

    /// The promise.
    pub(super) fn breaks(self) -> &'static str {
        match self {
            Self::TakesFromTheLiving | Self::HasNoQuarantine => "P4.6",
            Self::ForgetsWrites => "is lost",
        }
    }

    pub(super) fn quarantine(mutant: Option<Self>, lease_ttl: Duration) -> Duration {
        match mutant {
            Some(Self::HasNoQuarantine) => Duration::ZERO,
            _ => lease_ttl,
        }
    }

    /// Sabotages one node's way to the store.
    pub(super) fn sabotage(self, store: &MemoryStore, faults: &StoreFaults) {
        if self != Self::TakesFromTheLiving {
            return;
        }
        let store = store.clone();
        faults.script(move |call| {
            let key = call.key.as_ref().filter(|_| call.op == StoreOp::Claim)?;
            // A store in memory answers at once.
            let row = store.row(key).now_or_never()?.ok()??;
            let release = Release {
                session: row.session,
                key: key.clone(),
                epoch: Some(row.epoch),
            };
            let _ = store.release(&[release]).now_or_never();
            None
        });
    }
}
