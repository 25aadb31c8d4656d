//! `GET /registry/events`.

use super::{Operators, bodies};
use crate::passport::{Grants, Principal};
use crate::sessions::{RegistryError, covers};
use crate::store::{Event, EventPage, PlacementKey};

impl Operators {
    /// The events after one, of what the caller's claims cover (P3.3). `next` goes on after all that were looked at.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn events(
        &self,
        caller: &Principal,
        asked: bodies::Events,
    ) -> Result<EventPage, RegistryError> {
        let store = &self.registry.store;
        let mut page = store.events_after(asked.after, asked.limit).await?;
        page.events
            .retain(|event| is_covered(&caller.grants, event));
        Ok(page)
    }
}

fn is_covered(grants: &Grants, event: &Event) -> bool {
    let names_a_worker = event.client_id.is_some() || event.session_id.is_some();
    if event.namespaces.is_empty() && names_a_worker && !grants.is_unrestricted() {
        // Nobody can tell whether it is covered.
        return false;
    }
    covers(
        grants,
        event.namespaces.iter(),
        event.hostname.as_deref().unwrap_or(PlacementKey::SINGLE),
        event.env.iter(),
    )
}
