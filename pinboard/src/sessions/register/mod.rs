//! `POST /registry/register`.

mod earlier;
mod reclaim;
mod refused;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use pinned_wire::registry::{InstanceRef, RegisterAck};
use tokio::sync::OwnedSemaphorePermit;

use super::bodies::Register;
use super::challenge::{Proof, prove};
use super::grant::Grant;
use super::service::task_failed;
use super::{RegistryError, Sessions, covers, covers_client, of_session};
use crate::passport::{Grants, Principal};
use crate::store::{
    EventKind, Heartbeat, HeartbeatOutcome, NewSession, PlacementKey, SessionId, SessionRecord,
    SessionUpdate,
};

pub(super) use refused::Refused;
use refused::Who;

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
        self.register_in(caller, given, None, None).await
    }

    /// As [`register`](Self::register), for a call from `peer`, keeping `room` until it is done.
    pub(super) async fn register_in(
        self: &Arc<Self>,
        caller: &Principal,
        given: Register,
        room: Option<OwnedSemaphorePermit>,
        peer: Option<IpAddr>,
    ) -> Result<RegisterAck, RegistryError> {
        let domain = &self.registry.domain;
        let who = Who {
            client_id: &given.client_id,
            advertise_url: given.url.as_str(),
            key: &caller.account.sub,
            peer,
        };
        self.check_claims(caller, &given, &who).await?;
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
                self.refused.not_covered(domain, &who, &why.to_string());
                return Err(RegistryError::Forbidden);
            }
            Proof::Elsewhere(why) => {
                self.refused.elsewhere(domain, &who, why);
                return Err(RegistryError::NotProved(format!(
                    "advertiseUrl did not prove to be the worker's own: {why}"
                )));
            }
            Proof::Unreachable(why) => {
                self.refused.unreachable(domain, &who, why);
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

    /// Says that someone was refused before their call was read.
    pub(super) fn told_stranger(&self, error: &RegistryError, peer: Option<IpAddr>) {
        let why = match error {
            RegistryError::Forbidden => "its token has not the scope pinboard:worker",
            _ => "its token is missing or not known",
        };
        self.refused.stranger(&self.registry.domain, peer, why);
    }

    /// Says that what `caller` sent cannot be read.
    pub(super) fn told_malformed(
        &self,
        error: &RegistryError,
        caller: &Principal,
        peer: Option<IpAddr>,
    ) {
        let (key, why) = (&caller.account.sub, error.to_string());
        self.refused
            .malformed(&self.registry.domain, key, peer, &why);
    }

    async fn check_claims(
        &self,
        caller: &Principal,
        given: &Register,
        who: &Who<'_>,
    ) -> Result<(), RegistryError> {
        let domain = &self.registry.domain;
        let single: Arc<str> = PlacementKey::SINGLE.into();
        let covered = covers(
            &caller.grants,
            given.namespaces.iter(),
            &single,
            std::iter::once(&single),
        );
        if !covered {
            let why = not_covered(&caller.grants, given);
            self.refused.not_covered(domain, who, &why);
            return Err(RegistryError::Forbidden);
        }
        // Whoever registers a client id ends its session, and takes over the orders for it.
        match self.registry.store.client(&given.client_id).await? {
            Some(known) if !covers_client(&caller.grants, &known) => {
                let why = "its key does not cover the worker that registered this client id before";
                self.refused.not_covered(domain, who, why);
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

/// What a key does not cover of a worker in single mode.
fn not_covered(grants: &Grants, given: &Register) -> String {
    let mut namespaces = given.namespaces.iter();
    match namespaces.find(|namespace| !grants.covers_namespace(namespace)) {
        Some(namespace) => format!("its key does not cover the namespace {namespace}"),
        None => "its key does not cover its hostname and env".to_owned(),
    }
}

fn registered_again() -> RegistryError {
    RegistryError::Unavailable("the worker has registered again meanwhile".to_owned())
}
