//! Who serves what, at one moment.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ahash::RandomState;

use super::Worker;
use crate::store::SessionId;

type ByName<T> = HashMap<Arc<str>, T, RandomState>;

/// The sessions that live and what they serve, as of one reading. Never changed, only replaced.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    workers: HashMap<SessionId, Arc<Worker>, RandomState>,
    /// By environment, and in it by namespace.
    namespaces: ByName<ByName<Arc<Namespace>>>,
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
        let mut serving: ByName<ByName<Vec<Arc<Worker>>>> = HashMap::default();
        for (env, ns) in served {
            let of_env = serving.entry(Arc::clone(env)).or_default();
            of_env.insert(Arc::clone(ns), Vec::new());
        }
        for worker in in_order(&workers) {
            let view = Arc::clone(&worker.view.read());
            for ns in &view.record.namespaces {
                let of_env = serving.entry(Arc::clone(view.record.env_of(ns)));
                let serving = of_env.or_default().entry(Arc::clone(ns)).or_default();
                // A worker may name a namespace twice.
                if serving.last().is_none_or(|last| last.id != worker.id) {
                    serving.push(Arc::clone(&worker));
                }
            }
        }
        let namespace = |env: &Arc<str>, ns: Arc<str>, workers| {
            let namespace = Namespace {
                env: Arc::clone(env),
                ns: Arc::clone(&ns),
                workers,
            };
            (ns, Arc::new(namespace))
        };
        let namespaces = serving
            .into_iter()
            .map(|(env, of_env)| {
                let of_env = of_env
                    .into_iter()
                    .map(|(ns, workers)| namespace(&env, ns, workers))
                    .collect();
                (env, of_env)
            })
            .collect();
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
