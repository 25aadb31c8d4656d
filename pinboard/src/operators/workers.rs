//! `GET /registry/workers`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Operators;
use crate::passport::Principal;
use crate::sessions::{RegistryError, covers_session, left_until};
use crate::store::{Drain, SessionView};

/// The workers of the fleet (P3.1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkersTable {
    /// Those that live and that the caller's claims cover, the oldest first.
    pub workers: Vec<WorkerRow>,
}

/// One worker. Its secret is not here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerRow {
    /// The worker process.
    pub client_id: String,
    /// Where requests for it are sent.
    pub advertise_url: String,
    /// Its session.
    pub session_id: String,
    /// Its routing identity; `*` in single mode.
    pub hostname: Arc<str>,
    /// Its data identity; `*` in single mode.
    pub env: Arc<str>,
    /// Other data identities, for single namespaces.
    pub envs: BTreeMap<Arc<str>, Arc<str>>,
    /// What it serves.
    pub namespaces: Vec<Arc<str>>,
    /// Free memory in MiB.
    pub headroom: u64,
    /// Whether it takes no new ids: of its own accord, or by an operator's order.
    pub draining: bool,
    /// Whether an operator has cordoned it.
    pub cordoned: bool,
    /// What is left until the operator's deadline, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_deadline: Option<f64>,
    /// Whether its advertised URL answered for it when last asked.
    pub reachable: bool,
    /// When it registered, in milliseconds since the Unix epoch.
    pub registered_at: u64,
    /// When its last heartbeat was accepted, in milliseconds since the Unix epoch.
    pub last_heartbeat_at: u64,
}

impl From<&SessionView> for WorkerRow {
    fn from(view: &SessionView) -> Self {
        let record = &view.record;
        Self {
            client_id: record.client_id.clone(),
            advertise_url: record.advertise_url.clone(),
            session_id: view.id.to_string(),
            hostname: Arc::clone(&record.hostname),
            env: Arc::clone(&record.env),
            envs: record.envs.clone(),
            namespaces: record.namespaces.clone(),
            headroom: record.update.headroom,
            draining: is_draining(view),
            cordoned: view.drain == Some(Drain::Cordon),
            drain_deadline: view
                .drain
                .and_then(left_until)
                .map(|left| left.as_secs_f64()),
            reachable: record.update.reachable,
            registered_at: record.registered_at,
            last_heartbeat_at: view.last_heartbeat_at,
        }
    }
}

/// Whether a worker takes no new ids, whoever said so.
pub(super) fn is_draining(view: &SessionView) -> bool {
    view.record.update.draining || view.drain.is_some()
}

impl Operators {
    /// The workers that live and that the caller's claims cover (P3.1).
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub async fn workers(&self, caller: &Principal) -> Result<WorkersTable, RegistryError> {
        let views = self.covered_sessions(caller).await?;
        Ok(WorkersTable {
            workers: views.iter().map(WorkerRow::from).collect(),
        })
    }

    /// The sessions that live now and that the caller's claims cover, the oldest first.
    pub(super) async fn covered_sessions(
        &self,
        caller: &Principal,
    ) -> Result<Vec<SessionView>, RegistryError> {
        let mut views = self.registry.live_sessions().await?;
        views.retain(|view| !view.ending && covers_session(&caller.grants, &view.record));
        views.sort_by(|one, other| {
            let order = |view: &SessionView| (view.record.registered_at, view.id.clone());
            order(one).cmp(&order(other))
        });
        Ok(views)
    }
}
