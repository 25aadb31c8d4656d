//! Registering, heartbeats, and the end of a session (W3, W4).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use pinned_wire::registry::{
    DEREGISTER_PATH, Deregister, HEARTBEAT_PATH, Heartbeat, HeartbeatAck, REGISTER_PATH, Refusal,
    Register, RegisterAck, Secret,
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::InstanceKey;
use super::core::Core;
use super::messages;
use super::state::{Challenge, Now, Phase, State};
use super::transport::RegistryAnswer;

/// Why a call to the registry came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryFailure {
    /// No answer came.
    #[error("the registry does not answer")]
    Transport(#[source] io::Error),
    /// The token is no good: 401.
    #[error("the registry does not know the token")]
    Unauthorized,
    /// Not yet: 503.
    #[error("the registry asks to come back later")]
    Deferred {
        /// `Retry-After`, when it was a number.
        retry_after: Option<Duration>,
    },
    /// The session is lost: register again (W4.7).
    #[error("the session is lost")]
    Lost,
    /// Another worker has displaced this one for good (W4.8).
    #[error("the worker is superseded")]
    Superseded,
    /// Anything else.
    #[error("the registry refuses with {status}: {}", refusal.error)]
    Rejected {
        /// The status.
        status: StatusCode,
        /// The body.
        refusal: Refusal,
    },
    /// The answer is not what it has to be.
    #[error("the registry's answer is malformed")]
    Malformed(#[source] serde_json::Error),
    /// There is no session, or the worker is over.
    #[error("there is no session")]
    NoSession,
}

impl Core {
    /// Registers, and does what the answer says in the order of W3.7.
    pub(super) async fn register(&self) -> Result<RegisterAck, RegistryFailure> {
        let _one_at_a_time = self.registering.lock().await;
        self.clock.runs().await;
        let (asked, body) = {
            let now = self.now();
            let mut state = self.state.lock();
            if state.phase != Phase::Serving {
                return Err(RegistryFailure::NoSession);
            }
            let challenge = self.new_challenge(&mut state);
            let previous = state.session.as_ref().or(state.previous.as_ref());
            let register = Register {
                client_id: self.client_id.clone(),
                secret: self.secret.clone(),
                namespaces: self
                    .options
                    .namespaces
                    .iter()
                    .map(|ns| ns.to_string())
                    .collect(),
                advertise_url: self.options.advertise_url.clone(),
                headroom: self.knobs.headroom_now(),
                draining: state.own_drain.is_some(),
                challenge: challenge.question.expose().to_owned(),
                challenge_value: challenge.answer,
                hostname: None,
                env: None,
                envs: None,
                takeover: None,
                epoch: None,
                prev_session_id: previous.map(|session| session.to_string()),
                lapsed: self.options.names_every_refusal
                    && state.lease.is_expired(now.own)
                    && !state.records.is_empty(),
                instances: state.instances(),
            };
            (now, register)
        };
        let answer = self.call(REGISTER_PATH, &body).await;
        let ack: RegisterAck = accepted(answer)?;
        let closing = {
            let now = self.now();
            let mut state = self.state.lock();
            if state.phase != Phase::Serving {
                return Err(RegistryFailure::NoSession);
            }
            state.session = Some(Arc::from(ack.session_id.as_str()));
            state.previous = None;
            state.acks.clear();
            // Before the lease is renewed: they live elsewhere.
            let mut closing = Vec::new();
            for duplicate in &ack.duplicates {
                let key = InstanceKey::new(duplicate.ns.as_str(), duplicate.id.as_str());
                closing.extend(state.close(&key, true, now));
            }
            self.renew(&mut state, asked, ack.expires_in_ms);
            state.echo(ack.draining, ack.drain_deadline, now);
            closing
        };
        self.finish_all(closing);
        self.changed.notify_waiters();
        let core = self.this();
        self.domain.spawn(async move { core.flush().await });
        Ok(ack)
    }

    /// Sends a heartbeat, and does what the answer says in the order of W4.4.
    pub(super) async fn heartbeat(&self) -> Result<HeartbeatAck, RegistryFailure> {
        let _one_at_a_time = self.registering.lock().await;
        self.clock.runs().await;
        let (asked, body, acks) = {
            let now = self.now();
            let mut state = self.state.lock();
            let (Some(session), Phase::Serving) = (state.session.clone(), state.phase) else {
                return Err(RegistryFailure::NoSession);
            };
            let challenge = self.new_challenge(&mut state);
            let acks: Vec<_> = state.acks.iter().cloned().collect();
            let heartbeat = Heartbeat {
                session_id: session.to_string(),
                headroom: self.knobs.headroom_now(),
                draining: state.own_drain.is_some(),
                drain_deadline: None,
                challenge: Some(challenge.question.expose().to_owned()),
                challenge_value: Some(challenge.answer),
                acks: (!acks.is_empty()).then(|| acks.clone()),
            };
            (now, heartbeat, acks)
        };
        let answer = self.call(HEARTBEAT_PATH, &body).await;
        let ack: Result<HeartbeatAck, _> = accepted(answer);
        let mut closing = Vec::new();
        {
            let now = self.now();
            let mut state = self.state.lock();
            match &ack {
                Ok(ack) => {
                    self.renew(&mut state, asked, ack.expires_in_ms);
                    state.echo(ack.draining, ack.drain_deadline, now);
                    for ack in &acks {
                        state.acks.remove(ack);
                    }
                    messages::apply(&mut state, &ack.messages, &self.options.namespaces, now);
                }
                Err(RegistryFailure::Lost) => {
                    state.previous = state.session.take().or(state.previous.take());
                    state.reregistrations += 1;
                }
                Err(RegistryFailure::Superseded) => {
                    state.phase = Phase::Superseded;
                    closing = state.close_all(now);
                }
                Err(_) => {}
            }
        }
        self.finish_all(closing);
        self.changed.notify_waiters();
        ack
    }

    /// Ends the session (W3.16).
    pub(super) async fn deregister(&self) -> Result<(), RegistryFailure> {
        let Some(session) = self.state.lock().session.clone() else {
            return Err(RegistryFailure::NoSession);
        };
        let session_id = session.to_string();
        let body = Deregister { session_id };
        let mut last = Err(RegistryFailure::NoSession);
        for pause in [200, 400, 0].map(Duration::from_millis) {
            let answer = self.call(DEREGISTER_PATH, &body).await;
            last = accepted::<serde_json::Value>(answer).map(drop);
            if last.is_ok() {
                self.state.lock().session = None;
                break;
            }
            if !pause.is_zero() {
                self.domain.sleep(pause).await;
            }
        }
        last
    }

    /// A fresh pair; only the latest answers (W2.2).
    fn new_challenge(&self, state: &mut State) -> Challenge {
        let challenge = Challenge {
            question: Secret::new(self.domain.token_hex(16)),
            answer: Secret::new(self.domain.token_hex(16)),
        };
        state.challenge = Some(challenge.clone());
        challenge
    }

    fn renew(&self, state: &mut State, asked: Now, expires_in_ms: u64) {
        let term = Duration::from_millis(expires_in_ms);
        let cap = state.lease_cap();
        let deadline: Instant = state.lease.renew(asked.own, term, cap);
        let until = asked.world + deadline.saturating_duration_since(asked.own);
        let (worker, now) = (&self.options.name, self.domain.monotonic());
        self.options.log.renew(worker, now, until);
    }
}

/// The body of an answer that is 200; in the order of W4.6 otherwise.
fn accepted<T: DeserializeOwned>(answer: io::Result<RegistryAnswer>) -> Result<T, RegistryFailure> {
    let answer = answer.map_err(RegistryFailure::Transport)?;
    if answer.status == StatusCode::OK {
        return serde_json::from_slice(&answer.body).map_err(RegistryFailure::Malformed);
    }
    let refusal: Refusal = serde_json::from_slice(&answer.body).unwrap_or_default();
    let status = answer.status;
    Err(match status {
        StatusCode::CONFLICT if refusal.superseded => RegistryFailure::Superseded,
        _ if refusal.reregister => RegistryFailure::Lost,
        StatusCode::UNAUTHORIZED => RegistryFailure::Unauthorized,
        StatusCode::SERVICE_UNAVAILABLE => {
            let seconds = answer.retry_after.and_then(|value| value.parse().ok());
            let retry_after = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
            RegistryFailure::Deferred { retry_after }
        }
        _ => RegistryFailure::Rejected { status, refusal },
    })
}

impl State {
    /// Does what the registry says of drains, when it says something new (W12).
    fn echo(&mut self, draining: bool, deadline: Option<f64>, now: Now) {
        if !draining {
            self.server_drain = None;
            return;
        }
        let left = deadline.and_then(|left| Duration::try_from_secs_f64(left).ok());
        let deadline = left.map(|left| pinned_domain::saturating_add(now.own, left));
        let steady = match (self.server_drain, deadline) {
            (Some(None), None) => true,
            (Some(Some(before)), Some(after)) => {
                let moved = before.max(after) - before.min(after);
                moved <= Duration::from_secs(1)
            }
            _ => false,
        };
        if !steady {
            self.server_drain = Some(deadline);
        }
    }
}
