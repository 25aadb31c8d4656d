//! The sessions, for the routes of workers and operators.

use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::sessions::Roster;
use crate::store::{SessionId, SessionView, StoreError, StoreFuture};
use crate::workers::Workers;

/// The sessions as [`Workers`] has them.
pub(super) struct WorkersRoster(pub(super) Workers);

impl Roster for WorkersRoster {
    fn session(&self, id: &SessionId) -> Option<Arc<SessionView>> {
        self.0.get(id).map(|worker| Arc::clone(&worker.view.read()))
    }

    fn sessions(&self) -> Vec<Arc<SessionView>> {
        let workers = self.0.all();
        workers
            .iter()
            .map(|worker| Arc::clone(&worker.view.read()))
            .collect()
    }

    fn refresh(&self) -> StoreFuture<'_, ()> {
        async move { self.0.refresh_now().await.map_err(StoreError::unavailable) }.boxed()
    }

    fn poke(&self) {
        self.0.refresh_soon();
    }
}
