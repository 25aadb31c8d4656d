//! Placing ids, fencing them, and taking them back (P4.2, P2.8, P3.5).

use std::sync::Arc;

use super::rows::{FenceAt, Placed};
use super::state::{Now, State};
use super::watch::HandleId;
use crate::store::{
    Claim, Claimed, Expected, Fence, FencedRow, PlacementKey, Release, SessionId, StoreError,
};

/// How many ids one look at a holder's list gives.
const PAGE: usize = 500;

impl State {
    pub(super) fn claim(
        &mut self,
        claim: &Claim,
        handle: HandleId,
        now: Now,
    ) -> Result<Claimed, StoreError> {
        let held = match self.kept.rows.get(&claim.key) {
            Some(row) if self.may_take(row, &claim.expected) => true,
            Some(_) => {
                let row = self.row(&claim.key, handle, now);
                return Ok(row.map_or(Claimed::CandidateGone, Claimed::Held));
            }
            None => false,
        };
        if let Some(ends_in) = self.quarantine(now) {
            return Ok(Claimed::Quarantined { ends_in });
        }
        if !self.kept.sessions.takes_ids(&claim.candidate) {
            return Ok(Claimed::CandidateGone);
        }
        if claim.expected != Expected::VacantForAnyone
            && let Some(preferred) = self.kept.rows.preferred(&claim.key)
            && *preferred != claim.candidate
            && self.kept.sessions.takes_ids(preferred)
        {
            return Ok(Claimed::Preferred(preferred.clone()));
        }
        let epoch = self.kept.epochs.next(&claim.key, now.ms, claim.above)?;
        self.put(&claim.key, &claim.candidate, epoch, Some(handle), now);
        Ok(Claimed::Placed {
            epoch,
            replaced: held,
        })
    }

    /// Whether the row is what was expected, and may go to another.
    fn may_take(&self, row: &Placed, expected: &Expected) -> bool {
        match expected {
            Expected::Vacant | Expected::VacantForAnyone => false,
            Expected::HeldByDead { session, epoch } => {
                row.is(session, *epoch) && !self.kept.sessions.lives(session)
            }
        }
    }

    /// Gives an id to a new holder, whoever has it now.
    pub(super) fn put(
        &mut self,
        key: &PlacementKey,
        session: &SessionId,
        epoch: u64,
        by: Option<HandleId>,
        now: Now,
    ) {
        self.take(key, by);
        let generation = self.kept.generation;
        let rows = &mut self.kept.rows;
        let row = rows.place(key, session.clone(), epoch, generation, now.at);
        if let Some(handle) = by {
            self.watchers.has_read(handle, &mut row.readers);
        }
        self.kept.sessions.hold(session, key, row.seq);
    }

    /// Takes an id from whoever has it.
    pub(super) fn take(&mut self, key: &PlacementKey, by: Option<HandleId>) -> Option<Placed> {
        let mut row = self.kept.rows.remove(key)?;
        self.kept.sessions.let_go(&row.session, key, row.seq);
        let readers = std::mem::take(&mut row.readers);
        self.watchers.changed(key, readers, by);
        Some(row)
    }

    /// Takes a row back from its holder; whether that was the holder.
    pub(super) fn release(&mut self, release: &Release, now: Now) -> bool {
        let holds = self.kept.rows.get(&release.key).is_some_and(|row| {
            row.session == release.session && release.epoch.is_none_or(|epoch| epoch == row.epoch)
        });
        if !holds {
            return false;
        }
        match self.take(&release.key, None) {
            Some(row) => {
                self.kept.rows.remember(&release.key, &row, now.at);
                true
            }
            None => false,
        }
    }

    pub(super) fn fence(
        &mut self,
        key: &PlacementKey,
        fence: Option<Fence>,
        now: Now,
    ) -> Option<FencedRow> {
        let row = self.kept.rows.get_mut(key)?;
        row.fence = fence.map(|fence| FenceAt::new(fence, now.at));
        let fenced = FencedRow {
            session: row.session.clone(),
            epoch: row.epoch,
        };
        let readers = std::mem::take(&mut row.readers);
        self.watchers.changed(key, readers, None);
        Some(fenced)
    }

    /// Some of the ids of a holder, and the cursor that goes on.
    pub(super) fn held_by(
        &self,
        session: &SessionId,
        env: &str,
        ns: &str,
        cursor: u64,
    ) -> (Vec<Arc<str>>, u64) {
        let Some(session) = self.kept.sessions.get(session) else {
            return (Vec::new(), 0);
        };
        let mut held = session.held(env, ns, cursor);
        let ids = held.by_ref().take(PAGE).map(|(_, id)| Arc::clone(id));
        let ids = ids.collect();
        (ids, held.next().map_or(0, |(seq, _)| seq))
    }
}
