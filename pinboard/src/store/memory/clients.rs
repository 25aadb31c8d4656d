//! What is remembered of workers beyond their sessions, and the orders that they are under (P3.4).

use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use tokio::time::Instant;

use crate::store::{ClientRecord, Drain, SessionId, SessionRecord};

/// How long a client is remembered after its latest heartbeat, and a drain after its deadline.
const KEPT: Duration = Duration::from_secs(7 * 86_400);

/// All clients.
#[derive(Clone, Default)]
pub(super) struct Clients {
    clients: AHashMap<String, Client>,
    next_purge: Option<Instant>,
}

#[derive(Clone)]
struct Client {
    record: ClientRecord,
    /// Its latest session.
    session: SessionId,
    until: Instant,
    drain: Option<DrainAt>,
}

/// A drain, by the clock.
#[derive(Clone, Copy)]
enum DrainAt {
    Cordon,
    By(Instant),
}

// ===== impl Clients =====

impl Clients {
    /// Notes a registration; the session that was the client's latest before.
    pub(super) fn register(
        &mut self,
        session: &SessionId,
        record: &SessionRecord,
        now: Instant,
    ) -> Option<SessionId> {
        let drain = self.order(&record.client_id, now);
        let client = Client {
            record: remembered(record),
            session: session.clone(),
            until: now + KEPT,
            drain,
        };
        let earlier = self.clients.insert(record.client_id.clone(), client);
        earlier.map(|client| client.session)
    }

    /// Notes that the client is alive.
    pub(super) fn renew(&mut self, client_id: &str, now: Instant) {
        if let Some(client) = self.clients.get_mut(client_id) {
            client.until = now + KEPT;
        }
    }

    /// What is remembered of a client.
    pub(super) fn get(&self, client_id: &str, now: Instant) -> Option<&ClientRecord> {
        let client = self.clients.get(client_id)?;
        client.is_remembered(now).then_some(&client.record)
    }

    /// The latest session of a client.
    pub(super) fn session(&self, client_id: &str) -> Option<&SessionId> {
        self.clients.get(client_id).map(|client| &client.session)
    }

    /// Sets or lifts an order; whether the client is remembered.
    pub(super) fn set_drain(
        &mut self,
        client_id: &str,
        drain: Option<Drain>,
        now: Instant,
    ) -> bool {
        match self.clients.get_mut(client_id) {
            Some(client) if client.is_remembered(now) => {
                client.drain = drain.map(|drain| match drain {
                    Drain::Cordon => DrainAt::Cordon,
                    Drain::By { left } => DrainAt::By(pinned_domain::saturating_add(now, left)),
                });
                true
            }
            _ => false,
        }
    }

    /// The order that a client is under.
    pub(super) fn drain(&self, client_id: &str, now: Instant) -> Option<Drain> {
        self.order(client_id, now).map(|drain| match drain {
            DrainAt::Cordon => Drain::Cordon,
            DrainAt::By(deadline) => Drain::By {
                left: deadline.saturating_duration_since(now),
            },
        })
    }

    fn order(&self, client_id: &str, now: Instant) -> Option<DrainAt> {
        let drain = self.clients.get(client_id)?.drain?;
        drain.stands(now).then_some(drain)
    }

    /// Drops what is not remembered any more; every hour is often enough.
    pub(super) fn purge(&mut self, now: Instant) {
        if self.next_purge.is_none_or(|next| next <= now) {
            self.next_purge = Some(now + Duration::from_secs(3_600));
            self.clients.retain(|_, client| client.is_remembered(now));
        }
    }
}

// ===== impl Client =====

impl Client {
    fn is_remembered(&self, now: Instant) -> bool {
        self.until > now || self.drain.is_some_and(|drain| drain.stands(now))
    }
}

impl DrainAt {
    fn stands(self, now: Instant) -> bool {
        match self {
            Self::Cordon => true,
            Self::By(deadline) => deadline + KEPT > now,
        }
    }
}

/// What is remembered of a worker.
fn remembered(record: &SessionRecord) -> ClientRecord {
    let mut envs: Vec<Arc<str>> = Vec::from_iter(record.envs.values().cloned());
    envs.push(Arc::clone(&record.env));
    envs.sort_unstable();
    envs.dedup();
    ClientRecord {
        client_id: record.client_id.clone(),
        namespaces: record.namespaces.clone(),
        hostname: Arc::clone(&record.hostname),
        envs,
    }
}
