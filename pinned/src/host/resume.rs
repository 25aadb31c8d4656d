//! Bringing back instances that have durable work.

use std::sync::Arc;

use super::core::Host;
use super::directory::TurnedAway;
use crate::api::call::Entry;
use crate::api::chain::Origin;
use crate::api::refusal::{Refusal, Unavailable};
use crate::api::seam::{InstanceSeam, Seam};

impl Host {
    /// Admits a call from within the process, waiting for a close under way where that is the rule (H3.9).
    pub(super) async fn enter(self: &Arc<Self>, id: &str) -> Result<Seam, Unavailable> {
        if let Some(reason) = pinned_wire::ids::invalid_id_reason(id) {
            return Err(Refusal::InvalidId(reason).into());
        }
        let admitted = self.admit(id, None);
        match self
            .after_closes(admitted, id, None, &Origin::inside())
            .await
        {
            Ok(record) => Ok(record as Seam),
            Err(TurnedAway::Refused(refusal)) => Err(refusal.into()),
            Err(TurnedAway::Stopped) => Err(Refusal::NotServing.into()),
        }
    }

    /// Activates the instance of `id`, unless there is one in any state: that one has its marked rows in hand, or leaves
    /// them to the next look.
    pub(crate) async fn resume(self: &Arc<Self>, id: &str) -> Result<(), Unavailable> {
        if self.directory.get(id).is_some() {
            return Ok(());
        }
        let seam = self.enter(id).await?;
        let _entry = Entry::adopt(Arc::clone(&seam), None);
        loop {
            match InstanceSeam::activate(Arc::clone(&seam)).await {
                // It stays queued, and whoever resumes paces himself by its end.
                Err(Unavailable::Refused(Refusal::ActivationQueue)) => {}
                outcome => return outcome,
            }
        }
    }
}
