//! What a worker that registers keeps.

use futures_util::{StreamExt as _, stream};

use super::registered_again;
use crate::sessions::{RegistryError, Sessions};
use crate::store::{FenceState, MessageBody, PlacementKey, Reclaimed, SessionId};

/// How many instances are handed to the store at once, so that others get their turns in between.
const RECLAIM_PAGE: usize = 5_000;

/// How many rows are read at once.
const ROW_READS: usize = 64;

/// What the instances of a worker that registers came to.
#[derive(Default)]
pub(super) struct Kept {
    /// Those that live elsewhere, or must end.
    pub(super) duplicates: Vec<PlacementKey>,
    /// Those whose rows were the worker's own.
    pub(super) moved: Vec<PlacementKey>,
}

impl Sessions {
    pub(super) async fn reclaim(
        &self,
        id: &SessionId,
        own: &[SessionId],
        instances: &[PlacementKey],
    ) -> Result<Kept, RegistryError> {
        let mut kept = Kept::default();
        for page in instances.chunks(RECLAIM_PAGE) {
            let answers = self.registry.store.reclaim(id, own, page).await?;
            for (key, answer) in page.iter().zip(answers) {
                match answer {
                    Reclaimed::Moved { .. } => kept.moved.push(key.clone()),
                    Reclaimed::Claimed { .. } => {}
                    Reclaimed::Duplicate => kept.duplicates.push(key.clone()),
                }
            }
        }
        Ok(kept)
    }

    /// Tells the new session the wind-downs of rows that have moved to it: the earlier one may have ended before it was told, and a fence
    /// relies on its holder having been told (P3.5). Those whose deadline is past come back: they must end now.
    pub(super) async fn move_orders(
        &self,
        id: &SessionId,
        moved: Vec<PlacementKey>,
    ) -> Result<Vec<PlacementKey>, RegistryError> {
        let store = &self.registry.store;
        let mut rows = stream::iter(moved)
            .map(|key| async move { (store.row(&key).await, key) })
            .buffer_unordered(ROW_READS);
        let (mut orders, mut overdue) = (Vec::new(), Vec::new());
        while let Some((row, key)) = rows.next().await {
            match row?
                .filter(|row| row.session == *id)
                .and_then(|row| row.fence)
            {
                None => {}
                Some(FenceState::Ahead { starts_in, .. }) => orders.push(MessageBody {
                    key,
                    deadline: Some(starts_in),
                }),
                Some(FenceState::Standing { .. } | FenceState::Passed) => overdue.push(key),
            }
        }
        if !orders.is_empty() && !store.queue_messages(id, orders).await? {
            return Err(registered_again());
        }
        Ok(overdue)
    }
}
