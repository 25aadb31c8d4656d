//! The registration, as the part of the control plane that hosts talk to.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::registration::Registration;
use super::releases::Queued;
use crate::error::BoxError;
use crate::host::env::Placements;

/// A handle of the registration, as the part of the control plane that hosts talk to.
pub(crate) struct FleetPlacements(pub(crate) Arc<Registration>);

impl Placements for FleetPlacements {
    fn release(
        &self,
        namespace: &str,
        id: &str,
        epoch: Option<u64>,
    ) -> BoxFuture<'static, Result<(), BoxError>> {
        let registration = Arc::clone(&self.0);
        let queued = registration.queue_release(namespace, id, epoch);
        Box::pin(async move {
            let outcome = match queued {
                Queued::UntilRegistered => return Ok(()),
                Queued::Sent(outcome) => outcome,
            };
            registration.send_releases();
            match outcome.await {
                Ok(outcome) => outcome.map_err(Into::into),
                // The session went before it was sent: it goes out with the next.
                Err(_) => Ok(()),
            }
        })
    }

    fn session_audience(&self) -> Option<Arc<str>> {
        self.0.session_id()
    }
}
