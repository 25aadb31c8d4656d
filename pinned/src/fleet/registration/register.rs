//! Registering (W3).

use std::sync::Arc;

use http::StatusCode;
use pinned_wire::registry::{REGISTER_PATH, Register};
use tokio::time::Instant;

use super::Registration;
use super::run::Step;
use crate::error::ErrorChain;
use crate::fleet::ack;
use crate::fleet::backoff::Backoff;
use crate::fleet::calls::describe;
use crate::fleet::metrics::{self, control_failed, registration_failed};
use crate::fleet::session::{Challenge, Opening};
use crate::fleet::transport::ControlAnswer;
use crate::host::hosts::Hosts;

/// From which deferral in a row on the control plane is not just starting (W3.10).
const MANY_DEFERRALS: u32 = 3;

const UNKNOWN_TOKEN: &str =
    "the control plane does not know this worker's token (401); check PINBOARD_TOKEN";

impl Registration {
    pub(super) async fn register(
        self: &Arc<Self>,
        opening: Opening,
        challenge: Challenge,
        started: Instant,
        backoff: &mut Backoff,
    ) -> Step {
        let Some(hosts) = self.hosts.lock().upgrade() else {
            return Step::Wait;
        };
        let body = self.registration(&hosts, opening, challenge);
        let answer = match self.calls.once(REGISTER_PATH, &body).await {
            Ok(answer) => answer,
            Err(error) => {
                backoff.failed();
                registration_failed("transport");
                let why = ErrorChain(&*error).to_string();
                tracing::warn!(target: "pinned::fleet", error = why, "registering failed");
                self.standings
                    .refused(&format!("it cannot be reached: {why}"));
                return Step::Wait;
            }
        };
        match answer.status {
            StatusCode::OK => self.registered(&hosts, &answer, started, backoff),
            StatusCode::UNAUTHORIZED => {
                backoff.failed();
                registration_failed("unauthorized");
                tracing::error!(target: "pinned::fleet", "{UNKNOWN_TOKEN}");
                self.standings.refused(UNKNOWN_TOKEN);
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                // Not a rejection: the control plane, or this worker's own URL, is not up yet.
                control_failed("register", "deferred");
                let attempt = backoff.deferred(answer.retry_after.as_deref());
                let answer = describe(&answer);
                if attempt >= MANY_DEFERRALS {
                    tracing::warn!(target: "pinned::fleet", answer, "registration deferred (attempt {attempt})");
                    self.standings.refused(&format!("it answers {answer}"));
                } else {
                    tracing::info!(target: "pinned::fleet", answer, "registration deferred (attempt {attempt})");
                }
            }
            _ => {
                backoff.failed();
                registration_failed("rejected");
                let answer = describe(&answer);
                tracing::warn!(target: "pinned::fleet", answer, "registration rejected");
                self.standings.refused(&format!("it answers {answer}"));
            }
        }
        if self.session.id().is_some() {
            self.send_releases();
        }
        Step::Wait
    }

    fn registration(&self, hosts: &Hosts, opening: Opening, challenge: Challenge) -> Register {
        let membership = &self.membership;
        let envs = hosts.envs();
        let instances = hosts.instance_ids();
        Register {
            client_id: self.client_id.clone(),
            secret: self.secret.clone(),
            namespaces: hosts
                .iter()
                .map(|host| host.namespace.to_string())
                .collect(),
            advertise_url: membership.advertise_url.clone(),
            headroom: (membership.headroom)(),
            draining: opening.draining,
            challenge: challenge.question,
            challenge_value: challenge.answer,
            hostname: membership.hostname.clone(),
            env: membership.env.clone(),
            envs: (!envs.is_empty()).then_some(envs),
            takeover: membership.takeover,
            epoch: (membership.epoch > 0).then_some(membership.epoch),
            prev_session_id: opening.previous.map(|id| id.to_string()),
            lapsed: !instances.is_empty() && self.lease.expired(),
            instances: (!instances.is_empty()).then_some(instances),
        }
    }

    /// W3.7, in its order.
    fn registered(
        &self,
        hosts: &Hosts,
        answer: &ControlAnswer,
        started: Instant,
        backoff: &mut Backoff,
    ) {
        let ack = ack::object(&answer.body);
        let (Some(session), Some(term)) = (ack::text(&ack, "sessionId"), ack::term(&ack)) else {
            backoff.failed();
            registration_failed("malformed");
            tracing::error!(target: "pinned::fleet", answer = describe(answer), "malformed register ack");
            self.standings
                .refused("its answer to a registration cannot be read");
            return;
        };
        backoff.succeeded();
        self.session.adopt(session);
        // Before the lease renews: no request lands on an instance that another session owns.
        for (ns, id) in ack::duplicates(&ack) {
            metrics::duplicate_quit();
            tracing::warn!(target: "pinned::fleet", namespace = ns, instance_id = id, "lives elsewhere too; it quits here");
            if let Some(host) = hosts.named(ns) {
                host.abort(id);
            }
        }
        self.lease.renewed(term, Some(started));
        self.session.set_registered();
        self.standings.registered();
        self.follow_echo(hosts, &ack);
        tracing::info!(
            target: "pinned::fleet",
            session_id = session,
            namespaces = ?hosts.iter().map(|host| &*host.namespace).collect::<Vec<_>>(),
            reregistrations = self.session.reregistrations(),
            "registered"
        );
    }
}
