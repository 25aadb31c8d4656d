//! `POST /registry/register`.

mod earlier;
mod reclaim;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pinned_wire::registry::{InstanceRef, RegisterAck};
use tokio::sync::OwnedSemaphorePermit;

use super::bodies::Register;
use super::challenge::{Proof, prove};
use super::grant::Grant;
use super::service::task_failed;
use super::{RegistryError, Sessions, covers, covers_client, of_session};
use crate::passport::Principal;
use crate::store::{
    EventKind, Heartbeat, HeartbeatOutcome, NewSession, PlacementKey, SessionId, SessionRecord,
    SessionUpdate,
};

/// How long the proof of the URL may take, all in all (P2.3).
const PROOF_TIME: Duration = Duration::from_secs(5);

/// How long all that comes after it may take. Its client has gone by then; what is given up here the next try makes good.
const BEGIN_TIME: Duration = Duration::from_secs(60);

impl Sessions {
    /// Begins a session for a worker whose URL proves to be its own (P2.1 to P2.5).
    ///
    /// # Errors
    ///
    /// [`RegistryError::Forbidden`] when the caller's claims do not cover the worker, or the one that registered its client id before,
    /// or an address behind its URL. [`RegistryError::NotProved`] when the URL answers for someone else,
    /// [`RegistryError::Unavailable`] when it does not answer, [`RegistryError::Store`] when the store does not.
    ///
    /// # Cancel safety
    ///
    /// Once the URL is proved, the registration goes on to its end, so that no rows are left between two sessions. The worker
    /// registers again, and has it all moved once more.
    pub async fn register(
        self: &Arc<Self>,
        caller: &Principal,
        given: Register,
    ) -> Result<RegisterAck, RegistryError> {
        self.register_in(caller, given, None).await
    }

    /// As [`register`](Self::register), keeping `room` until it is done.
    pub(super) async fn register_in(
        self: &Arc<Self>,
        caller: &Principal,
        given: Register,
        room: Option<OwnedSemaphorePermit>,
    ) -> Result<RegisterAck, RegistryError> {
        self.check_claims(caller, &given).await?;
        let proof = prove(
            &self.registry,
            &*self.resolver,
            &caller.grants,
            &given.url,
            &given.secret,
            &given.challenge,
            PROOF_TIME,
        );
        let addresses = match proof.await {
            Proof::Held(addresses) => addresses,
            Proof::NotAllowed(why) => {
                tracing::warn!(client_id = given.client_id, %why, "a worker may not register");
                return Err(RegistryError::Forbidden);
            }
            Proof::Elsewhere(why) => {
                return Err(RegistryError::NotProved(format!(
                    "advertiseUrl did not prove to be the worker's own: {why}"
                )));
            }
            Proof::Unreachable(why) => {
                return Err(RegistryError::Unavailable(format!(
                    "advertiseUrl did not answer: {why}"
                )));
            }
        };
        let sessions = Arc::clone(self);
        let begun = self.registry.domain.spawn(async move {
            let _room = room;
            let domain = sessions.registry.domain.clone();
            let begin = sessions.begin(given, addresses);
            let begun = domain.timeout(BEGIN_TIME, begin).await;
            begun.unwrap_or_else(|_| Err(RegistryError::store_away()))
        });
        begun.await.unwrap_or_else(|error| Err(task_failed(&error)))
    }

    async fn check_claims(
        &self,
        caller: &Principal,
        given: &Register,
    ) -> Result<(), RegistryError> {
        let single: Arc<str> = PlacementKey::SINGLE.into();
        let covered = covers(
            &caller.grants,
            given.namespaces.iter(),
            &single,
            std::iter::once(&single),
        );
        if !covered {
            return Err(RegistryError::Forbidden);
        }
        // Whoever registers a client id ends its session, and takes over the orders for it.
        match self.registry.store.client(&given.client_id).await? {
            Some(known) if !covers_client(&caller.grants, &known) => {
                tracing::warn!(
                    client_id = given.client_id,
                    "a client id is registered by a caller whose claims do not cover it"
                );
                Err(RegistryError::Forbidden)
            }
            _ => Ok(()),
        }
    }

    /// The part that goes on to its end. The new session lives before anything moves to it, and the earlier one ends after, so that
    /// at no time anybody else can have an instance that lives in the worker.
    async fn begin(
        &self,
        given: Register,
        addresses: Vec<std::net::SocketAddr>,
    ) -> Result<RegisterAck, RegistryError> {
        let registry = &self.registry;
        if given.previous.is_some() {
            self.survivors.note(registry).await;
        }
        let id = SessionId::new(registry.domain.token_hex(16));
        let mut update = SessionUpdate {
            headroom: given.headroom,
            draining: given.draining,
            // New ids stay away while many are moving: the worker does not know its session yet.
            reachable: given.instances.is_empty(),
            moved_to: None,
        };
        let record = SessionRecord {
            client_id: given.client_id.clone(),
            secret: given.secret.clone(),
            namespaces: given.namespaces.clone(),
            advertise_url: given.url.as_str().to_owned(),
            addresses,
            hostname: PlacementKey::SINGLE.into(),
            env: PlacementKey::SINGLE.into(),
            envs: BTreeMap::new(),
            takeover: pinned_wire::registry::Takeover::default(),
            binding_epoch: 0,
            registered_at: registry.now_ms(),
            update: update.clone(),
        };
        let asked = registry.domain.monotonic();
        let registered = registry
            .store
            .register(NewSession {
                id: id.clone(),
                record: record.clone(),
            })
            .await?;
        let earlier = self.earlier_of(&id, &given, registered.earlier).await?;
        let mut instances = given.instances.clone();
        instances.extend(self.held_unnamed(&earlier.unnamed, &given).await?);
        let kept = if given.lapsed {
            self.reclaim_lapsed(&id, &earlier.own, &instances).await?
        } else {
            self.reclaim(&id, &earlier.own, &instances).await?
        };
        let mut duplicates = kept.duplicates;
        duplicates.extend(self.move_orders(&id, kept.moved).await?);
        if !given.instances.is_empty() {
            update.reachable = true;
            self.open(&id, update).await?;
        }
        for (session, mode) in &earlier.ends {
            self.end_earlier(session, *mode).await;
        }

        tracing::info!(
            client_id = record.client_id,
            session_id = %id,
            advertise_url = record.advertise_url,
            namespaces = ?record.namespaces,
            instances = given.instances.len(),
            duplicates = duplicates.len(),
            "registered"
        );
        let mut event = of_session(registry, EventKind::Register, &id, &record);
        if !given.instances.is_empty() {
            event.detail = Some(format!(
                "{} instances, {} of them elsewhere",
                given.instances.len(),
                duplicates.len()
            ));
        }
        registry.events.record(event);
        self.registry.see_changes().await;

        let waited = registry.domain.monotonic() - asked;
        let ttl = registry.settings.lease_ttl;
        let mut ack = Grant::new(ttl, registered.drain, None)
            .told_after(waited)
            .register_ack(&id);
        ack.duplicates = duplicates
            .into_iter()
            .map(|key| InstanceRef {
                ns: key.ns.to_string(),
                id: key.id.to_string(),
            })
            .collect();
        Ok(ack)
    }

    /// Lets new ids come.
    async fn open(&self, id: &SessionId, update: SessionUpdate) -> Result<(), RegistryError> {
        let opened = Heartbeat {
            session: id.clone(),
            update,
            acks: Vec::new(),
        };
        match self.registry.store.heartbeat(opened).await? {
            HeartbeatOutcome::Renewed { .. } => Ok(()),
            HeartbeatOutcome::Unknown | HeartbeatOutcome::Superseded => Err(registered_again()),
        }
    }
}

fn registered_again() -> RegistryError {
    RegistryError::Unavailable("the worker has registered again meanwhile".to_owned())
}
