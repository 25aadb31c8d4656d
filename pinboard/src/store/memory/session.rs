//! One session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::messages::Messages;
use crate::store::{PlacementKey, SessionRecord};

/// A session, and what it holds.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) record: SessionRecord,
    pub(super) last_heartbeat_at: u64,
    pub(super) messages: Messages,
    pub(super) life: Life,
    /// The version of its latest change.
    pub(super) changed: u64,
    held: Vec<Held>,
}

/// Whether a session lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// It does.
    Alive { until: Instant },
    /// It takes no heartbeats and no ids, and keeps its rows until then.
    Ending { until: Instant },
    /// It does not, since then.
    Dead { since: Instant },
}

/// The ids that a session holds in one namespace, by the places of their rows.
#[derive(Clone)]
struct Held {
    env: Arc<str>,
    ns: Arc<str>,
    ids: BTreeMap<u64, Arc<str>>,
}

// ===== impl Session =====

impl Session {
    pub(super) fn new(record: SessionRecord, until: Instant, ms: u64) -> Self {
        Self {
            record,
            last_heartbeat_at: ms,
            messages: Messages::default(),
            life: Life::Alive { until },
            changed: 0,
            held: Vec::new(),
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        matches!(self.life, Life::Dead { .. })
    }

    pub(super) fn is_ending(&self) -> bool {
        matches!(self.life, Life::Ending { .. })
    }

    pub(super) fn expires_in(&self, now: Instant) -> Duration {
        match self.life {
            Life::Alive { until } | Life::Ending { until } => until.saturating_duration_since(now),
            Life::Dead { .. } => Duration::ZERO,
        }
    }

    /// Some of its ids in a namespace, from the place `from` on, each with its place.
    pub(super) fn held<'a>(
        &'a self,
        env: &str,
        ns: &str,
        from: u64,
    ) -> impl Iterator<Item = (u64, &'a Arc<str>)> + use<'a> {
        let mut held = self.held.iter();
        let held = held.find(|held| *held.env == *env && *held.ns == *ns);
        held.into_iter()
            .flat_map(move |held| held.ids.range(from..))
            .map(|(seq, id)| (*seq, id))
    }

    /// Some id that it holds.
    pub(super) fn any_held(&self) -> Option<PlacementKey> {
        let held = self.held.first()?;
        let (_, id) = held.ids.first_key_value()?;
        Some(PlacementKey {
            env: Arc::clone(&held.env),
            ns: Arc::clone(&held.ns),
            id: Arc::clone(id),
        })
    }

    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    pub(super) fn hold(&mut self, key: &PlacementKey, seq: u64) {
        let id = Arc::clone(&key.id);
        match self.held.iter_mut().find(|held| held.is_of(key)) {
            Some(held) => drop(held.ids.insert(seq, id)),
            None => self.held.push(Held {
                env: Arc::clone(&key.env),
                ns: Arc::clone(&key.ns),
                ids: BTreeMap::from([(seq, id)]),
            }),
        }
    }

    pub(super) fn let_go(&mut self, key: &PlacementKey, seq: u64) {
        if let Some(at) = self.held.iter().position(|held| held.is_of(key)) {
            self.held[at].ids.remove(&seq);
            // None is empty, so that one look tells whether the session holds anything.
            if self.held[at].ids.is_empty() {
                self.held.swap_remove(at);
            }
        }
    }
}

impl Held {
    fn is_of(&self, key: &PlacementKey) -> bool {
        self.env == key.env && self.ns == key.ns
    }
}
