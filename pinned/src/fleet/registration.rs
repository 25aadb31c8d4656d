//! The registration of a worker: one loop that registers, and then sends heartbeats (W3, W4).

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use futures_util::FutureExt;
use http::StatusCode;
use parking_lot::Mutex;
use pinned_wire::registry::{
    DEREGISTER_PATH, Deregister, HEARTBEAT_PATH, Heartbeat, REGISTER_PATH, Register, Secret,
};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ack;
use super::backoff::Backoff;
use super::calls::{Calls, PATIENCE, describe};
use super::echo::{DrainEcho, DrainNews};
use super::messages::{self, Order};
use super::metrics::{self, control_failed, registration_failed};
use super::releases::{Queued, Releases};
use super::session::{Beat, Challenge, Next, Opening, Session};
use super::settings::Membership;
use super::transport::{ControlAnswer, ControlPlane};
use crate::domain::{Domain, TaskHandle, panic_message, saturating_add};
use crate::error::Chain;
use crate::host::hosts::Hosts;
use crate::host::wind_down::{DrainSource, WindDown};
use crate::lease::Lease;

/// From which deferral in a row on the control plane is not just starting (W3.10).
const MANY_DEFERRALS: u32 = 3;

/// The registration of one worker, shared by all its hosts.
pub(crate) struct Registration {
    membership: Membership,
    client_id: String,
    secret: Secret,
    lease: Lease,
    calls: Calls,
    session: Session,
    releases: Releases,
    /// Hosts hold their worker's environment, and so this.
    hosts: Mutex<Weak<Hosts>>,
    echo: Mutex<DrainEcho>,
    /// Tells the loop to go on at once; kept when it is busy (W4.11).
    wake: Notify,
    task: Mutex<Option<TaskHandle<()>>>,
}

/// What a call to the registry came to.
enum Step {
    /// Wait for the next beat, or as long as failures ask for.
    Wait,
    /// Go on at once.
    Now,
}

impl Registration {
    pub(crate) fn new(
        membership: Membership,
        secret: &str,
        domain: &Domain,
        lease: &Lease,
        plane: Arc<dyn ControlPlane>,
    ) -> Arc<Self> {
        Arc::new(Self {
            membership,
            client_id: domain.token_hex(16),
            secret: Secret::new(secret),
            lease: lease.clone(),
            calls: Calls::new(domain.clone(), plane),
            session: Session::new(),
            releases: Releases::new(),
            hosts: Mutex::default(),
            echo: Mutex::default(),
            wake: Notify::new(),
            task: Mutex::default(),
        })
    }

    /// The hosts that it speaks for, once they exist.
    pub(crate) fn attach(&self, hosts: &Arc<Hosts>) {
        *self.hosts.lock() = Arc::downgrade(hosts);
    }

    /// The worker process, as operators know it.
    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(crate) fn session_id(&self) -> Option<Arc<str>> {
        self.session.id()
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.session.is_registered()
    }

    pub(crate) fn is_superseded(&self) -> bool {
        self.session.is_superseded()
    }

    pub(crate) fn reregistrations(&self) -> u64 {
        self.session.reregistrations()
    }

    /// The answer to a challenge of the registry, if it is the latest (W10.2).
    pub(crate) fn answer(&self, challenge: &str) -> Option<Secret> {
        self.session.answer(challenge)
    }

    /// Begins to register, once every host has started (W1.4).
    pub(crate) fn start(self: &Arc<Self>) {
        if self.session.is_superseded() {
            return;
        }
        let mut task = self.task.lock();
        if task.is_none() {
            *task = Some(self.calls.domain.spawn(Arc::clone(self).run()));
        }
    }

    /// Ends the session and the loop, once nothing is left in the worker (W1.5, W3.16).
    pub(crate) async fn stop(&self) {
        self.finish_loop().await;
        let session = self.session.id();
        if let Some(session_id) = session {
            let body = Deregister {
                session_id: session_id.to_string(),
            };
            let outcome = self
                .calls
                .with_retries("deregister", DEREGISTER_PATH, &body, || {
                    "deregistering".to_owned()
                })
                .await;
            self.session.ended(outcome.is_ok());
        }
    }

    /// Lets the loop end with the call that is under way. A registration that is cut off may have begun a session that nobody ends,
    /// and a heartbeat beside a deregistration may begin another one: ids would go to it until its lease has run out.
    ///
    /// # Cancel safety
    ///
    /// The loop ends all the same.
    async fn finish_loop(&self) {
        self.session.close();
        self.wake.notify_one();
        let task = self.task.lock().take();
        if let Some(mut task) = task
            && self
                .calls
                .domain
                .timeout(PATIENCE, &mut task)
                .await
                .is_err()
        {
            task.abort();
        }
    }

    /// Ends the loop without a word to anybody.
    pub(crate) fn abort(&self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }

    /// Queues the release of a placement; the outcome comes when the send that takes it has ended.
    pub(super) fn queue_release(&self, namespace: &str, id: &str, epoch: Option<u64>) -> Queued {
        self.releases.queue(namespace, id, epoch, &self.session)
    }

    /// Sends what releases wait, in a task of its own: whoever waits for one may give up, others' may be in the same send, and
    /// heartbeats must not wait for any.
    pub(super) fn send_releases(self: &Arc<Self>) {
        let registration = Arc::clone(self);
        self.calls.domain.spawn(async move {
            let Self {
                releases,
                calls,
                session,
                ..
            } = &*registration;
            releases.flush(calls, session).await;
        });
    }

    /// Tells the registry at once whether the worker drains of its own accord.
    pub(crate) fn set_draining(&self, draining: bool) {
        if self.session.set_draining(draining) {
            self.wake.notify_one();
        }
    }

    // --- The loop ---

    async fn run(self: Arc<Self>) {
        let Ok(rng) = self.calls.domain.rng("register-backoff") else {
            unreachable!("the label is not empty")
        };
        let mut backoff = Backoff::new(self.membership.heartbeat_interval, rng);
        loop {
            let crash = AssertUnwindSafe(self.beat_on(&mut backoff))
                .catch_unwind()
                .await;
            let Err(panic) = crash else { return };
            self.crashed(&*panic);
            let now = self.calls.domain.monotonic();
            self.pause(saturating_add(now, self.membership.heartbeat_interval))
                .await;
        }
    }

    /// Waits until then, or for news.
    async fn pause(&self, until: Instant) {
        tokio::select! {
            biased;
            () = self.wake.notified() => {}
            () = self.calls.domain.sleep_until(until) => {}
        }
    }

    fn crashed(&self, panic: &(dyn Any + Send)) {
        control_failed("registration_loop", "crashed");
        tracing::error!(
            target: "pinned::fleet",
            panic = panic_message(panic),
            "the registration loop crashed; it starts again"
        );
    }

    async fn beat_on(self: &Arc<Self>, backoff: &mut Backoff) {
        let domain = &self.calls.domain;
        loop {
            // The moment before anything is sent: a slow answer never lengthens the lease, or the pause (W4.2, W6.6).
            let started = domain.monotonic();
            let challenge = Challenge {
                question: domain.token_hex(16),
                answer: Secret::new(domain.token_hex(16)),
            };
            let step = match self.session.next(challenge.clone()) {
                Next::Nothing => return,
                Next::Register(opening) => {
                    self.register(opening, challenge, started, backoff).await
                }
                Next::Beat(beat) => self.heartbeat(beat, challenge, started).await,
            };
            if matches!(step, Step::Now) {
                continue;
            }
            let delay = if self.session.id().is_some() {
                self.membership.heartbeat_interval
            } else {
                backoff.delay()
            };
            self.pause(saturating_add(started, delay)).await;
        }
    }

    // --- Registering ---

    async fn register(
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
                tracing::warn!(target: "pinned::fleet", error = %Chain(&*error), "registering failed");
                return Step::Wait;
            }
        };
        match answer.status {
            StatusCode::OK => self.registered(&hosts, &answer, started, backoff),
            StatusCode::UNAUTHORIZED => {
                backoff.failed();
                registration_failed("unauthorized");
                tracing::error!(
                    target: "pinned::fleet",
                    "the control plane does not know this worker's token (401); check PINBOARD_TOKEN"
                );
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                // Not a rejection: the control plane, or this worker's own URL, is not up yet.
                control_failed("register", "deferred");
                let attempt = backoff.deferred(answer.retry_after.as_deref());
                let answer = describe(&answer);
                if attempt >= MANY_DEFERRALS {
                    tracing::warn!(target: "pinned::fleet", answer, "registration deferred (attempt {attempt})");
                } else {
                    tracing::info!(target: "pinned::fleet", answer, "registration deferred (attempt {attempt})");
                }
            }
            _ => {
                backoff.failed();
                registration_failed("rejected");
                tracing::warn!(target: "pinned::fleet", answer = describe(&answer), "registration rejected");
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
        self.follow_echo(hosts, &ack);
        tracing::info!(
            target: "pinned::fleet",
            session_id = session,
            namespaces = ?hosts.iter().map(|host| &*host.namespace).collect::<Vec<_>>(),
            reregistrations = self.session.reregistrations(),
            "registered"
        );
    }

    // --- Heartbeats ---

    async fn heartbeat(&self, beat: Beat, challenge: Challenge, started: Instant) -> Step {
        let body = Heartbeat {
            session_id: beat.id.to_string(),
            headroom: (self.membership.headroom)(),
            draining: beat.draining,
            drain_deadline: None,
            challenge: Some(challenge.question),
            challenge_value: Some(challenge.answer),
            acks: (!beat.confirmed.is_empty()).then(|| beat.confirmed.clone()),
        };
        let answer = match self.calls.once(HEARTBEAT_PATH, &body).await {
            Ok(answer) => answer,
            Err(error) => {
                control_failed("heartbeat", "transport");
                tracing::warn!(target: "pinned::fleet", error = %Chain(&*error), "a heartbeat failed");
                return Step::Wait;
            }
        };
        if answer.status == StatusCode::OK {
            self.renewed(&answer, &beat, started);
            return Step::Wait;
        }
        self.heartbeat_refused(&answer)
    }

    /// W4.4, in its order.
    fn renewed(&self, answer: &ControlAnswer, beat: &Beat, started: Instant) {
        let ack = ack::object(&answer.body);
        let Some(term) = ack::term(&ack) else {
            control_failed("heartbeat", "malformed");
            tracing::error!(target: "pinned::fleet", answer = describe(answer), "malformed heartbeat ack");
            return;
        };
        let Some(hosts) = self.hosts.lock().upgrade() else {
            return;
        };
        self.lease.renewed(term, Some(started));
        self.follow_echo(&hosts, &ack);
        let confirmed = messages::apply(ack.get("messages"), |order| self.carry_out(&hosts, order));
        self.session.acknowledged(&beat.confirmed, confirmed);
    }

    /// W4.6, in its order.
    fn heartbeat_refused(&self, answer: &ControlAnswer) -> Step {
        let body = ack::object(&answer.body);
        if answer.status == StatusCode::CONFLICT && ack::truthy(&body, "superseded") {
            self.superseded(ack::text(&body, "error"));
            return Step::Now;
        }
        if ack::truthy(&body, "reregister") {
            self.session.lost();
            tracing::warn!(
                target: "pinned::fleet",
                "the control plane does not know this session; its instances are kept, and it registers again"
            );
            return Step::Now;
        }
        if answer.status == StatusCode::UNAUTHORIZED {
            control_failed("heartbeat", "unauthorized");
            tracing::error!(
                target: "pinned::fleet",
                "the control plane does not know this worker's token (401); check PINBOARD_TOKEN"
            );
        } else {
            control_failed("heartbeat", "rejected");
            tracing::warn!(target: "pinned::fleet", answer = describe(answer), "a heartbeat was rejected");
        }
        Step::Wait
    }

    fn superseded(&self, error: Option<&str>) {
        control_failed("heartbeat", "superseded");
        self.session.supersede();
        tracing::error!(
            target: "pinned::fleet",
            error,
            "another worker with a higher epoch has displaced this one for good; its instances are aborted"
        );
        if let Some(hosts) = self.hosts.lock().upgrade() {
            for host in hosts.iter() {
                host.abort_all();
            }
        }
    }

    fn follow_echo(&self, hosts: &Hosts, ack: &Map<String, Value>) {
        let now = self.calls.domain.monotonic();
        let news = self.echo.lock().read(ack, now);
        let (drain, news) = match news {
            None => return,
            Some(DrainNews::Begun(left)) => (
                Some(WindDown {
                    deadline: left.map(|left| saturating_add(now, left)),
                }),
                "begun",
            ),
            Some(DrainNews::Revoked) => (None, "revoked"),
        };
        tracing::info!(target: "pinned::fleet", "server drain {news}");
        hosts.apply_drain(DrainSource::Server, drain, &self.lease);
    }

    fn carry_out(&self, hosts: &Hosts, order: &Order<'_>) -> Result<(), String> {
        let host = match order.ns {
            Some(ns) => hosts
                .named(ns)
                .ok_or_else(|| format!("no namespace {ns:?} is served here"))?,
            None => hosts
                .only()
                .ok_or("`ns` is missing, and several namespaces are served here")?,
        };
        let now = self.calls.domain.monotonic();
        let asked = order.deadline.map(|after| WindDown {
            deadline: Some(saturating_add(now, after)),
        });
        host.wind_down(order.id, asked);
        Ok(())
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("client_id", &self.client_id)
            .field("session", &self.session.id())
            .finish_non_exhaustive()
    }
}
