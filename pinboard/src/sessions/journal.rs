//! Entries of the ring of events (P3.3).

use std::sync::Arc;

use super::Registry;
use crate::store::{Event, EventKind, SessionId, SessionRecord};

/// An entry of `kind`, as of now, that concerns nothing yet.
pub(crate) fn entry(registry: &Registry, kind: EventKind) -> Event {
    Event {
        seq: 0,
        at: registry.now_ms(),
        kind,
        client_id: None,
        session_id: None,
        env: None,
        hostname: None,
        namespaces: Vec::new(),
        id: None,
        epoch: None,
        detail: None,
    }
}

/// An entry that concerns a session.
pub(crate) fn of_session(
    registry: &Registry,
    kind: EventKind,
    id: &SessionId,
    record: &SessionRecord,
) -> Event {
    Event {
        client_id: Some(record.client_id.as_str().into()),
        session_id: Some(Arc::from(id.as_str())),
        env: Some(Arc::clone(&record.env)),
        hostname: Some(Arc::clone(&record.hostname)),
        namespaces: record.namespaces.clone(),
        ..entry(registry, kind)
    }
}
