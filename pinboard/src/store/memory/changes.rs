//! The log of what has happened to sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::store::{SessionId, SessionRecord};

/// The latest change of each session.
#[derive(Clone)]
pub(super) struct Changes {
    pub(super) version: u64,
    /// Changes up to this version may have been forgotten.
    pub(super) floor: u64,
    pub(super) by_version: BTreeMap<u64, SessionId>,
    pub(super) namespaces: BTreeSet<(Arc<str>, Arc<str>)>,
    /// When the set of namespaces last grew.
    pub(super) grown: u64,
}

// ===== impl Changes =====

impl Changes {
    pub(super) fn next(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Notes what a session serves.
    pub(super) fn serve(&mut self, record: &SessionRecord) {
        let before = self.namespaces.len();
        for ns in &record.namespaces {
            let env = Arc::clone(record.env_of(ns));
            self.namespaces.insert((env, Arc::clone(ns)));
        }
        if self.namespaces.len() > before {
            self.grown = self.next();
        }
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            // Version 0 is for whoever has read nothing yet.
            version: 1,
            floor: 1,
            by_version: BTreeMap::new(),
            namespaces: BTreeSet::new(),
            grown: 1,
        }
    }
}
