//! The state machine: everything that is behind the lock.

use std::time::{Duration, SystemTime};

use pinned_domain::Domain;
use tokio::time::Instant;

use super::clients::Clients;
use super::epochs::Epochs;
use super::fleet::{Leases, Ring};
use super::rows::Rows;
use super::session::Session;
use super::sessions::Sessions;
use super::watch::{HandleId, Watchers};
use crate::store::{
    Drain, EndMode, Heartbeat, HeartbeatOutcome, MessageBody, NewSession, PlacementKey, Registered,
    Row, SessionChanges, SessionId, SessionView, StoreOptions,
};

/// What is behind the lock.
pub(super) struct State {
    pub(super) options: StoreOptions,
    pub(super) kept: Kept,
    pub(super) watchers: Watchers,
}

/// What a copy has.
#[derive(Clone)]
pub(super) struct Kept {
    /// When new ids are placed again; without it there is no boot mark.
    pub(super) quarantine: Option<Instant>,
    /// How many times the store has been restarted from a copy.
    pub(super) generation: u64,
    pub(super) epochs: Epochs,
    pub(super) rows: Rows,
    pub(super) sessions: Sessions,
    pub(super) clients: Clients,
    pub(super) ring: Ring,
    pub(super) leases: Leases,
}

/// The time of one operation.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub(super) at: Instant,
    /// Milliseconds since the Unix epoch.
    pub(super) ms: u64,
}

impl Now {
    pub(super) fn of(domain: &Domain) -> Self {
        let since = domain.now().duration_since(SystemTime::UNIX_EPOCH);
        let ms = since.map_or(0, |since| since.as_millis());
        Self {
            at: domain.monotonic(),
            ms: u64::try_from(ms).unwrap_or(u64::MAX),
        }
    }
}

impl Kept {
    pub(super) fn new() -> Self {
        Self {
            quarantine: None,
            generation: 0,
            epochs: Epochs::new(),
            rows: Rows::default(),
            sessions: Sessions::default(),
            clients: Clients::default(),
            ring: Ring::default(),
            leases: Leases::default(),
        }
    }
}

impl State {
    pub(super) fn new(options: StoreOptions) -> Self {
        Self {
            options,
            kept: Kept::new(),
            watchers: Watchers::default(),
        }
    }

    /// Does what is due. Comes before every operation, with the time of that operation.
    pub(super) fn settle(&mut self, now: Now) {
        self.kept
            .quarantine
            .get_or_insert_with(|| pinned_domain::saturating_add(now.at, self.options.quarantine));
        self.kept.sessions.settle(now.at);
        self.kept.rows.settle(now.at);
    }

    /// Loses everything but `kept`, which is a copy or nothing. The first operation afterwards writes a new boot mark.
    pub(super) fn restart(&mut self, mut kept: Kept, now: Now) {
        kept.quarantine = None;
        kept.generation = self.kept.generation + 1;
        kept.sessions.end_all(now.at);
        kept.sessions.restart_log(&self.kept.sessions);
        kept.rows.unread();
        kept.ring.go_on_from(&self.kept.ring);
        self.kept = kept;
        self.watchers.all_changed();
    }

    // --- Quarantine ---

    pub(super) fn quarantine(&self, now: Now) -> Option<Duration> {
        let left = self.kept.quarantine?.saturating_duration_since(now.at);
        (!left.is_zero()).then_some(left)
    }

    pub(super) fn extend_quarantine(&mut self, at_least: Duration, now: Now) {
        let until = pinned_domain::saturating_add(now.at, at_least);
        self.kept.quarantine = self.kept.quarantine.max(Some(until));
    }

    // --- Sessions ---

    pub(super) fn register(&mut self, session: NewSession, now: Now) -> Registered {
        let NewSession { id, record } = session;
        let (sessions, clients) = (&mut self.kept.sessions, &mut self.kept.clients);
        let drain = clients.drain(&record.client_id, now.at);
        if sessions.get(&id).is_some() && !sessions.takes_ids(&id) {
            // A register that is repeated after its session has ended comes too late to change anything.
            let earlier = None;
            return Registered { earlier, drain };
        }
        let earlier = clients.register(&id, &record, now.at);
        // A register that is repeated finds itself.
        let earlier = earlier.filter(|earlier| *earlier != id && sessions.retire(earlier));
        let until = pinned_domain::saturating_add(now.at, self.options.lease_ttl);
        sessions.begin(&id, record, until, now.ms);
        Registered { earlier, drain }
    }

    pub(super) fn heartbeat(&mut self, heartbeat: Heartbeat, now: Now) -> HeartbeatOutcome {
        let Heartbeat {
            session: id,
            update,
            acks,
        } = heartbeat;
        let until = pinned_domain::saturating_add(now.at, self.options.lease_ttl);
        let sessions = &mut self.kept.sessions;
        if !sessions.renew(&id, update, until, now.ms) {
            return HeartbeatOutcome::Unknown;
        }
        let Some(session) = sessions.get_mut(&id) else {
            return HeartbeatOutcome::Unknown;
        };
        for ack in &acks {
            session.messages.confirm(ack);
        }
        let client_id = &session.record.client_id;
        self.kept.clients.renew(client_id, now.at);
        HeartbeatOutcome::Renewed {
            drain: self.kept.clients.drain(client_id, now.at),
            messages: session.messages.read(now.at),
        }
    }

    pub(super) fn end_session(&mut self, session: &SessionId, mode: EndMode, now: Now) -> bool {
        match mode {
            EndMode::Now => self.kept.sessions.end(session, now.at),
            EndMode::AtExpiry => self.kept.sessions.retire(session),
        }
    }

    pub(super) fn client_of(&self, session: &SessionId) -> Option<String> {
        let session = self.kept.sessions.get(session)?;
        Some(session.record.client_id.clone())
    }

    pub(super) fn sessions_since(&self, version: u64, now: Now) -> SessionChanges {
        let since = self.kept.sessions.since(version);
        let view = |(id, session): (&SessionId, &Session)| SessionView {
            id: id.clone(),
            record: session.record.clone(),
            drain: self.kept.clients.drain(&session.record.client_id, now.at),
            expires_in: session.expires_in(now.at),
            last_heartbeat_at: session.last_heartbeat_at,
            ending: session.is_ending(),
        };
        SessionChanges {
            version: since.version,
            complete: since.complete,
            changed: since.changed.into_iter().map(view).collect(),
            ended: since.ended,
            namespaces: since.namespaces.cloned(),
        }
    }

    // --- Orders ---

    pub(super) fn order_drain(&mut self, client_id: &str, drain: Option<Drain>, now: Now) -> bool {
        let known = self.kept.clients.set_drain(client_id, drain, now.at);
        if known && let Some(session) = self.kept.clients.session(client_id) {
            self.kept.sessions.touch(session);
        }
        known
    }

    pub(super) fn queue_messages(
        &mut self,
        session: &SessionId,
        messages: Vec<MessageBody>,
        now: Now,
    ) -> bool {
        if !self.kept.sessions.takes_ids(session) {
            return false;
        }
        if let Some(session) = self.kept.sessions.get_mut(session) {
            for message in messages {
                session.messages.push(message, now.at);
            }
        }
        true
    }

    // --- Rows ---

    pub(super) fn row(&mut self, key: &PlacementKey, handle: HandleId, now: Now) -> Option<Row> {
        let generation = self.kept.generation;
        let row = self.kept.rows.get_mut(key)?;
        self.watchers.has_read(handle, &mut row.readers);
        Some(row.read(generation, now.at))
    }
}
