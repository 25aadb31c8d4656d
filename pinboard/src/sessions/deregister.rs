//! `POST /registry/deregister`.

use super::{RegistryError, Sessions, covers_session, of_session};
use crate::passport::Principal;
use crate::store::{EndMode, EventKind, SessionId};

impl Sessions {
    /// Ends a session now; its rows are free at once (P2.9). One that does not live has ended already.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Forbidden`] when the caller's claims do not cover the session's worker, [`RegistryError::Store`] when
    /// the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// The session may have ended.
    pub async fn deregister(
        &self,
        caller: &Principal,
        session: &SessionId,
    ) -> Result<(), RegistryError> {
        let Some(view) = self.registry.session(session).await? else {
            return Ok(());
        };
        if !covers_session(&caller.grants, &view.record) {
            return Err(RegistryError::Forbidden);
        }
        if self
            .registry
            .store
            .end_session(session, EndMode::Now)
            .await?
        {
            tracing::info!(client_id = view.record.client_id, session_id = %session, "deregistered");
            let mut event = of_session(
                &self.registry,
                EventKind::SessionLost,
                session,
                &view.record,
            );
            event.detail = Some("deregistered".to_owned());
            self.registry.events.record(event);
        }
        self.registry.see_changes().await;
        Ok(())
    }
}
