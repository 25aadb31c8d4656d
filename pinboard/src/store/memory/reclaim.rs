//! What a worker that registers again keeps (P2.5).

use super::state::{Now, State};
use crate::store::{PlacementKey, Reclaimed, SessionId, StoreError};

impl State {
    /// Gives `session` the row of an instance that lives in its worker.
    pub(super) fn reclaim(
        &mut self,
        session: &SessionId,
        previous: &[SessionId],
        key: &PlacementKey,
        now: Now,
    ) -> Result<Reclaimed, StoreError> {
        if !self.kept.sessions.takes_ids(session) {
            // The worker will learn of it from its next heartbeat, and come back. To call its instances duplicates
            // would end them.
            return Err(StoreError::unavailable(
                "the session that reclaims has ended",
            ));
        }
        if let Some(row) = self.kept.rows.get(key) {
            let own = row.session == *session || previous.contains(&row.session);
            // A row from a copy may have been placed again since, so the worker may know a higher epoch than it has.
            if own && row.generation == self.kept.generation {
                let epoch = row.epoch;
                self.hand_over(key, session);
                return Ok(Reclaimed::Moved { epoch });
            }
            if self.kept.sessions.lives(&row.session) {
                return Ok(Reclaimed::Duplicate);
            }
        }
        let epoch = self.kept.epochs.next(key, now.ms, 0)?;
        self.put(key, session, epoch, None, now);
        Ok(Reclaimed::Claimed { epoch })
    }

    /// Names another session of the same worker in a row.
    fn hand_over(&mut self, key: &PlacementKey, to: &SessionId) {
        let seq = self.kept.rows.next_seq();
        let Some(row) = self.kept.rows.get_mut(key) else {
            return;
        };
        if row.session == *to {
            return;
        }
        let (from, former) = (std::mem::replace(&mut row.session, to.clone()), row.seq);
        row.seq = seq;
        let readers = std::mem::take(&mut row.readers);
        self.kept.sessions.let_go(&from, key, former);
        self.kept.sessions.hold(to, key, seq);
        self.watchers.changed(key, readers, None);
    }
}
