//! What the routes of workers and of operators both work with.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use pinned_domain::Domain;

use super::RegistryError;
use crate::events::Events;
use crate::passport::{Passport, Principal};
use crate::settings::Settings;
use crate::store::{RegistryStore, SessionId, SessionView};
use crate::upstream::Fetcher;
use crate::workers::Workers;

/// How long a change that the store has taken waits for this node to see it.
const SEEN_WITHIN: Duration = Duration::from_secs(1);

/// What the routes of workers and of operators both work with. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    /// The state of the fleet.
    pub store: Arc<dyn RegistryStore>,
    /// Who vouches for callers.
    pub passport: Passport,
    /// The sessions, as this node has last read them.
    pub workers: Workers,
    /// Asks workers something small.
    pub fetcher: Arc<dyn Fetcher>,
    /// Where what happens is told.
    pub events: Events,
    /// What this node has been told.
    pub settings: Arc<Settings>,
    /// The world.
    pub domain: Domain,
}

impl Registry {
    /// Who is calling, if they may: with a token that a provider resolves, and `scope` among its scopes.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Unauthorized`] without such a token, [`RegistryError::Forbidden`] without the scope.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        scope: &str,
    ) -> Result<Principal, RegistryError> {
        let principal = self.passport.authenticate(headers).await;
        let principal = principal.ok_or(RegistryError::Unauthorized)?;
        if principal.has(scope) {
            Ok(principal)
        } else {
            Err(RegistryError::Forbidden)
        }
    }

    /// A session that lives, or that this node has not yet seen end. One that this node does not know is looked for in the store:
    /// it may have registered with another node a moment ago.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub(crate) async fn session(
        &self,
        id: &SessionId,
    ) -> Result<Option<Arc<SessionView>>, RegistryError> {
        if let Some(view) = self.known_session(id) {
            return Ok(Some(view));
        }
        if self.workers.has_ended(id) {
            return Ok(None);
        }
        self.workers.refresh_now().await?;
        Ok(self.known_session(id))
    }

    /// A session that lives as far as this node knows.
    pub(crate) fn known_session(&self, id: &SessionId) -> Option<Arc<SessionView>> {
        let worker = self.workers.get(id)?;
        let view = Arc::clone(&worker.view.read());
        Some(view)
    }

    /// All sessions that live now, as the store has them now: what is left of their leases and drains too, which the views that this
    /// node keeps do not count down.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub(crate) async fn live_sessions(&self) -> Result<Vec<SessionView>, RegistryError> {
        Ok(self.store.sessions_since(0).await?.changed)
    }

    /// This node sees at once what it has just changed. Others, and this one if the store does not answer now, see it when they
    /// next look.
    pub(crate) async fn see_changes(&self) {
        // That it failed is told where it is read, and it is tried again soon.
        let seen = self.workers.refresh_now();
        let _ = self.domain.timeout(SEEN_WITHIN, seen).await;
    }

    /// The wall clock in milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> u64 {
        let since = self
            .domain
            .now()
            .duration_since(std::time::SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("store", &self.store.describe())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
