//! `POST /registry/heartbeat`.

use std::net::SocketAddr;
use std::time::Duration;

use pinned_wire::registry::HeartbeatAck;

use super::bodies::{Challenge, Heartbeat};
use super::challenge::{Proof, prove};
use super::coverage::{addresses_of, covers_addresses};
use super::grant::Grant;
use super::{AdvertisedUrl, RegistryError, Sessions, covers_session, of_session};
use crate::passport::Principal;
use crate::store::{self, EndMode, EventKind, HeartbeatOutcome, SessionUpdate, SessionView};

/// The longest that the proof of a URL may hold up a heartbeat: the worker gives up after 5 s (W2.3), and the store wants its time too.
const LONGEST_PROOF: Duration = Duration::from_millis(3_500);
/// The shortest that it gets, however short the lease.
const SHORTEST_PROOF: Duration = Duration::from_millis(200);

const UNKNOWN: &str = "unknown or expired session";
const NOT_ITS_OWN: &str = "the advertised URL answers for someone else";

impl Sessions {
    /// Renews a session, and tells its worker what operators want of it (P2.6, P2.7, P2.10).
    ///
    /// # Errors
    ///
    /// [`RegistryError::Reregister`] when the session does not live, or its URL answers for someone else;
    /// [`RegistryError::Superseded`] when another worker has displaced it; [`RegistryError::Forbidden`] when the caller's claims
    /// do not cover the worker or its addresses; [`RegistryError::Store`] when the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// The session may have been renewed, and messages that were confirmed dropped.
    pub async fn heartbeat(
        &self,
        caller: &Principal,
        given: Heartbeat,
    ) -> Result<HeartbeatAck, RegistryError> {
        let registry = &self.registry;
        let Some(view) = registry.session(&given.session).await? else {
            self.survivors.note(registry).await;
            return Err(RegistryError::Reregister(UNKNOWN));
        };
        if !covers_session(&caller.grants, &view.record) {
            return Err(RegistryError::Forbidden);
        }
        let (reachable, moved_to) = match &given.challenge {
            Some(challenge) => self.prove_again(caller, &view, challenge).await?,
            None => {
                let last = &view.record.update;
                (last.reachable, last.moved_to.clone())
            }
        };
        let update = SessionUpdate {
            headroom: given.headroom,
            draining: given.draining,
            reachable,
            moved_to,
        };
        let changed = update.draining != view.record.update.draining
            || update.reachable != view.record.update.reachable
            || update.moved_to != view.record.update.moved_to;
        let outcome = registry
            .store
            .heartbeat(store::Heartbeat {
                session: given.session,
                update,
                acks: given.acks,
            })
            .await?;
        match outcome {
            HeartbeatOutcome::Renewed { drain, messages } => {
                let settings = &registry.settings;
                // Where leases are long, this node reads often enough that they run on.
                if changed || settings.lease_ttl < 5 * settings.sweep_interval {
                    registry.workers.refresh_soon();
                }
                let grant = Grant::new(settings.lease_ttl, drain, given.drain_left);
                Ok(grant.heartbeat_ack(messages))
            }
            HeartbeatOutcome::Unknown => {
                registry.workers.refresh_soon();
                self.survivors.note(registry).await;
                Err(RegistryError::Reregister(UNKNOWN))
            }
            HeartbeatOutcome::Superseded => {
                registry.workers.refresh_soon();
                Err(RegistryError::Superseded)
            }
        }
    }

    /// Proves the URL of a session again: whether it answered, and the addresses that it has now.
    ///
    /// A URL that does not answer keeps new ids away, and no more: what lives in the worker may be served well. So does a host
    /// that has got addresses which the claims do not cover; those are never dialled.
    async fn prove_again(
        &self,
        caller: &Principal,
        view: &SessionView,
        challenge: &Challenge,
    ) -> Result<(bool, Option<Vec<SocketAddr>>), RegistryError> {
        let registry = &self.registry;
        let record = &view.record;
        let url = AdvertisedUrl::parse(&record.advertise_url).map_err(|error| {
            // It was read when the worker registered.
            tracing::error!(session_id = %view.id, %error, "the store has a URL that is none");
            RegistryError::Internal
        })?;
        if !covers_addresses(&caller.grants, &url, record) {
            return Err(RegistryError::Forbidden);
        }
        let proof = prove(
            registry,
            &*self.resolver,
            &caller.grants,
            &url,
            &record.secret,
            challenge,
            proof_time(registry.settings.lease_ttl),
        );
        let why = match proof.await {
            Proof::Held(addresses) => {
                if !record.update.reachable {
                    tracing::info!(
                        client_id = record.client_id,
                        "the advertised URL answers again"
                    );
                }
                let moved_to = if is_same_set(&addresses, addresses_of(record)) {
                    record.update.moved_to.clone()
                } else {
                    Some(addresses)
                };
                return Ok((true, moved_to));
            }
            Proof::Elsewhere(why) => {
                self.lose(view, why).await?;
                return Err(RegistryError::Reregister(NOT_ITS_OWN));
            }
            Proof::NotAllowed(_) => "its host leads to an address that the claims do not cover",
            Proof::Unreachable(why) => why,
        };
        if record.update.reachable {
            tracing::warn!(
                client_id = record.client_id,
                session_id = %view.id,
                why,
                "the advertised URL does not answer: nothing new is placed there"
            );
        }
        Ok((false, record.update.moved_to.clone()))
    }

    /// Ends a session whose URL is not its worker's any more. The worker may be alive, and keeps its rows for as long as its lease
    /// runs, or until it has registered again.
    async fn lose(&self, view: &SessionView, why: &'static str) -> Result<(), RegistryError> {
        let registry = &self.registry;
        if registry
            .store
            .end_session(&view.id, EndMode::AtExpiry)
            .await?
        {
            tracing::warn!(
                client_id = view.record.client_id,
                session_id = %view.id,
                why,
                "the advertised URL answers for someone else: the session has ended"
            );
            let mut event = of_session(registry, EventKind::SessionLost, &view.id, &view.record);
            event.detail = Some(format!("{NOT_ITS_OWN}: {why}"));
            registry.events.record(event);
        }
        self.registry.see_changes().await;
        Ok(())
    }
}

/// Resolvers turn their answers round from one time to the next.
fn is_same_set(some: &[SocketAddr], others: &[SocketAddr]) -> bool {
    some.len() == others.len() && some.iter().all(|address| others.contains(address))
}

/// How long the proof may hold up a heartbeat: never so long that a worker whose URL hangs would lose its lease over it.
fn proof_time(lease_ttl: Duration) -> Duration {
    (lease_ttl / 3).clamp(SHORTEST_PROOF, LONGEST_PROOF)
}
