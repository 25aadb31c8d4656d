//! Earlier sessions of a worker that registers.

use std::collections::BTreeMap;

use pinned_domain::ErrorChain;

use crate::sessions::bodies::Register;
use crate::sessions::{RegistryError, Sessions, of_session};
use crate::store::{EndMode, EventKind, SessionId};

/// Earlier sessions of a worker that registers.
#[derive(Default)]
pub(super) struct Earlier {
    /// Those that are the same process: what they hold is the new session's.
    pub(super) own: Vec<SessionId>,
    /// Those of `own` that the worker does not name. It may know one of them all the same: this may be an attempt that was held up,
    /// while a later one began that session.
    pub(super) unnamed: Vec<SessionId>,
    /// Those that end, and how.
    pub(super) ends: BTreeMap<SessionId, EndMode>,
}

impl Earlier {
    fn add_own(&mut self, session: &SessionId) {
        if self.ends.insert(session.clone(), EndMode::Now).is_none() {
            self.own.push(session.clone());
        }
    }
}

impl Sessions {
    /// What is known of the worker's earlier sessions. A `prevSessionId` counts when it is the same client's, or when nobody knows
    /// it any more (P2.5). Others of the client count when they have the same secret: a worker whose last acks got lost cannot name
    /// the sessions that it got, and its rows may be with any of them.
    pub(super) async fn earlier_of(
        &self,
        id: &SessionId,
        given: &Register,
        replaced: Option<SessionId>,
    ) -> Result<Earlier, RegistryError> {
        let registry = &self.registry;
        let mut earlier = Earlier::default();
        if let Some(previous) = &given.previous {
            match registry.store.client_of(previous).await? {
                Some(client) if client == given.client_id => {
                    earlier.add_own(previous);
                }
                Some(_) => tracing::warn!(
                    client_id = given.client_id,
                    "a worker names the session of another as its previous one"
                ),
                None => earlier.own.push(previous.clone()),
            }
        }
        if replaced.is_none() && given.instances.is_empty() {
            return Ok(earlier);
        }
        // Begun after the new session was: none of these takes rows any more.
        registry.workers.refresh_now().await?;
        for worker in registry.workers.all() {
            let is_own = worker.id != *id
                && **worker.client_id() == *given.client_id
                && worker
                    .view
                    .read()
                    .record
                    .secret
                    .is(given.secret.expose().as_bytes());
            if is_own {
                if given.previous.as_ref() != Some(&worker.id) {
                    earlier.unnamed.push(worker.id.clone());
                }
                earlier.add_own(&worker.id);
            }
        }
        if let Some(replaced) = replaced {
            // Another process under the same name, which may be alive: its rows are free when its lease has run out.
            earlier.ends.entry(replaced).or_insert(EndMode::AtExpiry);
        }
        Ok(earlier)
    }

    /// The new session stands whatever comes of this: the earlier one takes no more heartbeats, and ends by itself.
    pub(super) async fn end_earlier(&self, session: &SessionId, mode: EndMode) {
        let registry = &self.registry;
        let view = registry.known_session(session);
        match registry.store.end_session(session, mode).await {
            Ok(false) => {}
            Ok(true) => {
                if let Some(view) = view {
                    let mut event =
                        of_session(registry, EventKind::SessionLost, session, &view.record);
                    event.detail = Some("registered again".to_owned());
                    registry.events.record(event);
                }
            }
            Err(error) => tracing::warn!(
                error = %ErrorChain(&error),
                session_id = %session,
                "the earlier session of a worker could not be ended"
            ),
        }
    }
}
