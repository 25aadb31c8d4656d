//! What a worker that registers keeps.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

use super::registered_again;
use crate::sessions::bodies::Register;
use crate::sessions::{RegistryError, Sessions};
use crate::store::{FenceState, MessageBody, PlacementKey, Reclaimed, Release, SessionId};

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
    /// Those that nobody held, and that the worker has now.
    claimed: Vec<(PlacementKey, u64)>,
}

impl Sessions {
    /// What rows name sessions of the worker that it did not name, beside the instances that it did.
    ///
    /// These ids may have come to it after it sent this, and live in it: they stay with it, whatever session it has. To free them would
    /// let others have them as well.
    pub(super) async fn held_unnamed(
        &self,
        sessions: &[SessionId],
        given: &Register,
    ) -> Result<Vec<PlacementKey>, RegistryError> {
        let mut held = BTreeSet::new();
        let env: Arc<str> = PlacementKey::SINGLE.into();
        for session in sessions {
            for ns in &given.namespaces {
                let mut cursor = 0;
                loop {
                    let store = &self.registry.store;
                    let (ids, next) = store.held_by(session, &env, ns, cursor).await?;
                    let keys = ids
                        .into_iter()
                        .map(|id| PlacementKey::new(Arc::clone(&env), Arc::clone(ns), id));
                    held.extend(keys.filter(|key| given.instances.binary_search(key).is_err()));
                    cursor = next;
                    if cursor == 0 {
                        break;
                    }
                }
            }
        }
        Ok(held.into_iter().collect())
    }

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
                    Reclaimed::Claimed { epoch } => kept.claimed.push((key.clone(), epoch)),
                    Reclaimed::Duplicate => kept.duplicates.push(key.clone()),
                }
            }
        }
        Ok(kept)
    }

    /// As [`reclaim`](Self::reclaim), for a worker whose lease had passed: it keeps what rows still name as its own, and nothing else.
    ///
    /// An id without a row may have gone to somebody else since, whose row the store has lost, and who has not registered again yet:
    /// to that worker it belongs. It is not claimed for a moment either, in which its holder would be told that it has a duplicate.
    pub(super) async fn reclaim_lapsed(
        &self,
        id: &SessionId,
        own: &[SessionId],
        instances: &[PlacementKey],
    ) -> Result<Kept, RegistryError> {
        let store = &self.registry.store;
        let mut rows = stream::iter(instances.to_vec())
            .map(|key| async move { (store.row(&key).await, key) })
            .buffered(ROW_READS);
        let (mut named, mut unnamed) = (Vec::new(), Vec::new());
        while let Some((row, key)) = rows.next().await {
            match row? {
                Some(row) if own.contains(&row.session) => named.push(key),
                _ => unnamed.push(key),
            }
        }
        drop(rows);
        let mut kept = self.reclaim(id, own, &named).await?;
        // Its row went in between, or is of before the store lost its latest writes.
        let claimed = std::mem::take(&mut kept.claimed);
        for page in claimed.chunks(RECLAIM_PAGE) {
            let release = |(key, epoch): &(PlacementKey, u64)| Release {
                session: id.clone(),
                key: key.clone(),
                epoch: Some(*epoch),
            };
            let releases: Vec<Release> = page.iter().map(release).collect();
            store.release(&releases).await?;
        }
        kept.duplicates
            .extend(claimed.into_iter().map(|(key, _)| key));
        kept.duplicates.append(&mut unnamed);
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
                Some(FenceState::Passed) | None => {}
                Some(FenceState::Ahead { starts_in, .. }) => orders.push(MessageBody {
                    key,
                    deadline: Some(starts_in),
                }),
                Some(FenceState::Standing { .. }) => overdue.push(key),
            }
        }
        if !orders.is_empty() && !store.queue_messages(id, orders).await? {
            return Err(registered_again());
        }
        Ok(overdue)
    }
}
