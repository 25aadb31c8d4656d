//! The sessions: those that live, and those that have died.

use std::collections::BTreeSet;
use std::sync::Arc;

use ahash::AHashMap;
use tokio::time::Instant;

use super::changes::Changes;
use super::messages::Messages;
use super::session::{Life, Session};
use crate::store::{PlacementKey, SessionId, SessionRecord, SessionUpdate};

/// All sessions: those that live, and those that have died and are still remembered or still hold rows.
#[derive(Clone, Default)]
pub(super) struct Sessions {
    sessions: AHashMap<SessionId, Session>,
    /// Those that live, by when they die unless they are renewed.
    expiring: BTreeSet<(Instant, SessionId)>,
    /// Those that have died, by when.
    dead: BTreeSet<(Instant, SessionId)>,
    changes: Changes,
}

/// What [`Sessions::since`] gives.
pub(super) struct Since<'a> {
    pub(super) version: u64,
    pub(super) complete: bool,
    pub(super) changed: Vec<(&'a SessionId, &'a Session)>,
    pub(super) ended: Vec<SessionId>,
    pub(super) namespaces: Option<&'a BTreeSet<(Arc<str>, Arc<str>)>>,
}

// ===== impl Sessions =====

impl Sessions {
    pub(super) fn get(&self, id: &SessionId) -> Option<&Session> {
        self.sessions.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(id)
    }

    /// Whether a session holds what it holds.
    pub(super) fn lives(&self, id: &SessionId) -> bool {
        self.get(id).is_some_and(|session| !session.is_dead())
    }

    /// Whether a session takes heartbeats and ids.
    pub(super) fn takes_ids(&self, id: &SessionId) -> bool {
        self.get(id)
            .is_some_and(|session| matches!(session.life, Life::Alive { .. }))
    }

    /// Begins a session, or renews the one that has begun already.
    pub(super) fn begin(&mut self, id: &SessionId, record: SessionRecord, until: Instant, ms: u64) {
        self.changes.serve(&record);
        let session = self
            .sessions
            .entry(id.clone())
            .or_insert_with(|| Session::new(record, until, ms));
        if let Life::Alive { until: earlier } = session.life {
            session.life = Life::Alive { until };
            self.expiring.remove(&(earlier, id.clone()));
            self.expiring.insert((until, id.clone()));
            self.touch(id);
        }
    }

    /// Renews a session; `false` when it takes no heartbeats.
    pub(super) fn renew(
        &mut self,
        id: &SessionId,
        update: SessionUpdate,
        until: Instant,
        ms: u64,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        let Life::Alive { until: earlier } = session.life else {
            return false;
        };
        session.life = Life::Alive { until };
        session.last_heartbeat_at = ms;
        if let Some(addresses) = &update.moved_to {
            session.record.addresses.clone_from(addresses);
        }
        session.record.update = update;
        self.expiring.remove(&(earlier, id.clone()));
        self.expiring.insert((until, id.clone()));
        self.touch(id);
        true
    }

    /// Has a session take no more heartbeats and ids; whether it lived.
    pub(super) fn retire(&mut self, id: &SessionId) -> bool {
        match self.sessions.get_mut(id) {
            Some(session) => match session.life {
                Life::Alive { until } => {
                    session.life = Life::Ending { until };
                    session.messages = Messages::default();
                    self.touch(id);
                    true
                }
                Life::Ending { .. } => true,
                Life::Dead { .. } => false,
            },
            None => false,
        }
    }

    /// Ends a session; whether it lived.
    pub(super) fn end(&mut self, id: &SessionId, now: Instant) -> bool {
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        let (Life::Alive { until } | Life::Ending { until }) = session.life else {
            return false;
        };
        session.life = Life::Dead { since: now };
        session.messages = Messages::default();
        self.expiring.remove(&(until, id.clone()));
        self.dead.insert((now, id.clone()));
        self.touch(id);
        true
    }

    /// Ends what has expired by `now`.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some((until, id)) = self.expiring.first()
            && *until <= now
        {
            let (until, id) = (*until, id.clone());
            self.end(&id, until);
        }
    }

    /// Ends all of them.
    pub(super) fn end_all(&mut self, now: Instant) {
        while let Some((_, id)) = self.expiring.first() {
            let id = id.clone();
            self.end(&id, now);
        }
    }

    /// Records that something about a session has changed.
    pub(super) fn touch(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.get_mut(id) {
            self.changes.by_version.remove(&session.changed);
            session.changed = self.changes.next();
            self.changes.by_version.insert(session.changed, id.clone());
        }
    }

    /// What has happened since `version`.
    pub(super) fn since(&self, version: u64) -> Since<'_> {
        let changes = &self.changes;
        let complete = version < changes.floor || version > changes.version;
        let after = if complete { 0 } else { version };
        let (mut changed, mut ended) = (Vec::new(), Vec::new());
        for id in changes.by_version.range(after + 1..).map(|(_, id)| id) {
            match self.get(id) {
                Some(session) if !session.is_dead() => changed.push((id, session)),
                _ if complete => {}
                _ => ended.push(id.clone()),
            }
        }
        Since {
            version: changes.version,
            complete,
            changed,
            ended,
            namespaces: (complete || changes.grown > version).then_some(&changes.namespaces),
        }
    }

    /// Makes every reader read the complete list, as after a loss; versions go on from `earlier`.
    pub(super) fn restart_log(&mut self, earlier: &Self) {
        let version = earlier.changes.version.max(self.changes.version) + 1;
        self.changes.version = version;
        self.changes.floor = version;
    }

    /// The session that died first of those that hold rows.
    pub(super) fn first_dead_holder(&self) -> Option<&SessionId> {
        let mut dead = self.dead.iter().map(|(_, id)| id);
        dead.find(|id| self.get(id).is_some_and(|session| session.holds_any()))
    }

    /// Forgets those that died before `then` and hold nothing.
    pub(super) fn forget(&mut self, then: Instant) {
        let old = self.dead.iter().take_while(|(since, _)| *since < then);
        let empty = old.filter(|(_, id)| self.get(id).is_none_or(|session| !session.holds_any()));
        let forgotten: Vec<_> = empty.cloned().collect();
        for dead in forgotten {
            self.dead.remove(&dead);
            if let Some(session) = self.sessions.remove(&dead.1) {
                self.changes.by_version.remove(&session.changed);
                self.changes.floor = self.changes.floor.max(session.changed);
            }
        }
    }

    /// Puts an id on the list of its holder.
    pub(super) fn hold(&mut self, holder: &SessionId, key: &PlacementKey, seq: u64) {
        if let Some(session) = self.sessions.get_mut(holder) {
            session.hold(key, seq);
        }
    }

    /// Takes an id off the list of its holder.
    pub(super) fn let_go(&mut self, holder: &SessionId, key: &PlacementKey, seq: u64) {
        if let Some(session) = self.sessions.get_mut(holder) {
            session.let_go(key, seq);
        }
    }
}
