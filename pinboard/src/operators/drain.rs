//! `POST /registry/drain` and `undrain`.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Operators, bodies};
use crate::passport::Principal;
use crate::sessions::{RegistryError, covers_client, entry};
use crate::store::{ClientRecord, Drain, Event, EventKind};

/// What came of a drain, or of taking one back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainAnswer {
    /// Whether the worker is under an operator's order now.
    pub draining: bool,
    /// What is left until its deadline, in seconds; `null` when there is none.
    pub drain_deadline: Option<f64>,
}

impl Operators {
    /// Takes a worker out of placement: until a deadline, which is at least a lease TTL away, or for good (P3.4). The worker may be
    /// down: the order waits for it.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Forbidden`] when the caller's claims do not cover the worker, or this store has never seen it: which of
    /// these is not told. [`RegistryError::Store`] when the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// The order may stand.
    pub async fn drain(
        &self,
        caller: &Principal,
        order: bodies::Drain,
    ) -> Result<DrainAnswer, RegistryError> {
        let left = order.deadline.map(|given| self.at_least_a_lease(given));
        let drain = match left {
            None => Drain::Cordon,
            Some(left) => Drain::By { left },
        };
        let client = self.covered_client(caller, &order.client_id).await?;
        self.order(&client, Some(drain)).await?;
        tracing::info!(
            client_id = client.client_id,
            seconds = left.map(|left| left.as_secs_f64()),
            by = caller.account.sub,
            "a worker drains"
        );
        self.tell(
            &client,
            EventKind::Drain,
            Some(match left {
                None => "cordon".to_owned(),
                Some(left) => format!("within {} s", left.as_secs_f64()),
            }),
        );
        Ok(DrainAnswer {
            draining: true,
            drain_deadline: left.map(|left| left.as_secs_f64()),
        })
    }

    /// Takes such an order back.
    ///
    /// # Errors
    ///
    /// As [`drain`](Self::drain).
    ///
    /// # Cancel safety
    ///
    /// The order may be gone.
    pub async fn undrain(
        &self,
        caller: &Principal,
        client_id: &str,
    ) -> Result<DrainAnswer, RegistryError> {
        let client = self.covered_client(caller, client_id).await?;
        self.order(&client, None).await?;
        tracing::info!(
            client_id = client.client_id,
            by = caller.account.sub,
            "a worker's drain was taken back"
        );
        self.tell(&client, EventKind::Undrain, None);
        Ok(DrainAnswer {
            draining: false,
            drain_deadline: None,
        })
    }

    /// A lease TTL at least: until then a worker may hold a lease that knows of no order.
    pub(super) fn at_least_a_lease(&self, given: Duration) -> Duration {
        given.max(self.registry.settings.lease_ttl)
    }

    async fn covered_client(
        &self,
        caller: &Principal,
        client_id: &str,
    ) -> Result<ClientRecord, RegistryError> {
        match self.registry.store.client(client_id).await? {
            Some(client) if covers_client(&caller.grants, &client) => Ok(client),
            _ => Err(RegistryError::Forbidden),
        }
    }

    async fn order(
        &self,
        client: &ClientRecord,
        drain: Option<Drain>,
    ) -> Result<(), RegistryError> {
        let store = &self.registry.store;
        if !store.order_drain(&client.client_id, drain).await? {
            // Forgotten since it was looked up.
            return Err(RegistryError::Forbidden);
        }
        self.registry.see_changes().await;
        Ok(())
    }

    fn tell(&self, client: &ClientRecord, kind: EventKind, detail: Option<String>) {
        self.registry.events.record(Event {
            client_id: Some(client.client_id.as_str().into()),
            env: client.envs.first().cloned(),
            hostname: Some(Arc::clone(&client.hostname)),
            namespaces: client.namespaces.clone(),
            detail,
            ..entry(&self.registry, kind)
        });
    }
}
