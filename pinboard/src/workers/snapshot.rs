//! Who serves what, at one moment.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ahash::RandomState;

use super::Worker;
use crate::store::SessionId;

/// The sessions that live and what they serve, as of one reading. Never changed, only replaced.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    workers: HashMap<SessionId, Arc<Worker>, RandomState>,
    /// By environment, and in it by namespace.
    namespaces: HashMap<Arc<str>, HashMap<Arc<str>, Arc<Namespace>, RandomState>, RandomState>,
}

/// A namespace of an environment that some worker serves or has served.
#[derive(Debug)]
pub struct Namespace {
    /// The environment.
    pub env: Arc<str>,
    /// The namespace, with the slash.
    pub ns: Arc<str>,
    /// Who serves it, in the order of their session ids, whether or not they take new ids.
    pub workers: Vec<Arc<Worker>>,
}

impl Snapshot {
    /// `served` is every namespace that was ever served, in order.
    pub(super) fn new(
        workers: HashMap<SessionId, Arc<Worker>, RandomState>,
        served: &BTreeSet<(Arc<str>, Arc<str>)>,
    ) -> Self {
        let mut serving: HashMap<(Arc<str>, Arc<str>), Vec<Arc<Worker>>, RandomState> =
            HashMap::default();
        for key in served {
            serving.insert(key.clone(), Vec::new());
        }
        for worker in in_order(&workers) {
            let view = Arc::clone(&worker.view.read());
            for ns in &view.record.namespaces {
                let key = (Arc::clone(view.record.env_of(ns)), Arc::clone(ns));
                let serving = serving.entry(key).or_default();
                // A worker may name a namespace twice.
                if serving.last().is_none_or(|last| last.id != worker.id) {
                    serving.push(Arc::clone(&worker));
                }
            }
        }
        let mut namespaces: HashMap<Arc<str>, HashMap<_, _, RandomState>, _> = HashMap::default();
        for ((env, ns), workers) in serving {
            let namespace = Arc::new(Namespace {
                env: Arc::clone(&env),
                ns: Arc::clone(&ns),
                workers,
            });
            namespaces.entry(env).or_default().insert(ns, namespace);
        }
        Self {
            workers,
            namespaces,
        }
    }

    pub(super) fn workers(&self) -> &HashMap<SessionId, Arc<Worker>, RandomState> {
        &self.workers
    }

    pub(super) fn namespace(&self, env: &str, ns: &str) -> Option<&Arc<Namespace>> {
        self.namespaces.get(env)?.get(ns)
    }

    /// All workers, in the order of their sessions: what follows from the order must not depend on a hash.
    pub(super) fn in_order(&self) -> Vec<Arc<Worker>> {
        in_order(&self.workers)
    }
}

fn in_order(workers: &HashMap<SessionId, Arc<Worker>, RandomState>) -> Vec<Arc<Worker>> {
    let mut workers: Vec<_> = workers.values().cloned().collect();
    workers.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    workers
}
