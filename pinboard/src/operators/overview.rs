//! `GET /registry/overview`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Operators;
use super::stats::Asked;
use super::workers::is_draining;
use crate::passport::Principal;
use crate::sessions::RegistryError;
use crate::store::Drain;

/// The counts that a console needs in one call (P3.3), of what the caller's claims cover.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// Workers that live.
    pub workers: u64,
    /// Of these, those that take no new ids.
    pub draining: u64,
    /// Of these, those whose URL did not answer for them when last asked, or that do not answer now.
    pub degraded: u64,
    /// Of the draining ones, those that an operator has given a deadline.
    pub winding_down: u64,
    /// Ids that somebody holds.
    pub instances: u64,
    /// The same, in each namespace.
    pub namespaces: Vec<NamespaceCount>,
    /// Streams and WebSockets that are open at the workers.
    pub connections: u64,
    /// How requests to this node found their holders, by outcome (P11).
    pub resolutions: BTreeMap<String, u64>,
}

/// How many ids of a namespace somebody holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceCount {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The environment; `*` in single mode.
    pub env: Arc<str>,
    /// How many.
    pub instances: u64,
}

/// What is counted of a worker's stats.
#[derive(Default, Deserialize)]
struct Counted {
    #[serde(default)]
    instances: Vec<Instance>,
}

#[derive(Deserialize)]
struct Instance {
    #[serde(default)]
    connections: u64,
}

impl Operators {
    /// The counts that a console needs in one call (P3.3).
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn overview(&self, caller: &Principal) -> Result<Overview, RegistryError> {
        let asked = self.ask_workers(caller).await?;
        let mut overview = Overview {
            resolutions: self.figures.figures().resolutions,
            ..Overview::default()
        };
        for asked in &asked {
            overview.count(asked);
        }
        for (env, namespace, instances) in self.registry.store.row_counts().await? {
            let grants = &caller.grants;
            if !grants.covers_namespace(&namespace) || !grants.covers_env(&env) {
                continue;
            }
            overview.instances = overview.instances.saturating_add(instances);
            overview.namespaces.push(NamespaceCount {
                namespace,
                env,
                instances,
            });
        }
        overview
            .namespaces
            .sort_by(|one, other| (&one.env, &one.namespace).cmp(&(&other.env, &other.namespace)));
        Ok(overview)
    }
}

impl Overview {
    fn count(&mut self, asked: &Asked) {
        let view = &asked.view;
        let counted = match &asked.answer {
            Ok(body) => serde_json::from_slice::<Counted>(body).ok(),
            Err(_) => None,
        };
        self.workers += 1;
        self.draining += u64::from(is_draining(view));
        self.degraded += u64::from(!view.record.update.reachable || counted.is_none());
        self.winding_down += u64::from(matches!(view.drain, Some(Drain::By { .. })));
        self.connections = counted
            .unwrap_or_default()
            .instances
            .iter()
            .fold(self.connections, |sum, instance| {
                sum.saturating_add(instance.connections)
            });
    }
}
