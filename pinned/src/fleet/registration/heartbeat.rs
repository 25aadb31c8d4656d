//! Heartbeats, and what comes with their answers: a longer lease, drains, orders (W4).

use http::StatusCode;
use pinned_wire::registry::{HEARTBEAT_PATH, Heartbeat};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::Registration;
use super::run::Step;
use crate::domain::saturating_add;
use crate::error::ErrorChain;
use crate::fleet::ack;
use crate::fleet::calls::describe;
use crate::fleet::echo::DrainNews;
use crate::fleet::messages::{self, Order};
use crate::fleet::metrics::control_failed;
use crate::fleet::session::{Beat, Challenge};
use crate::fleet::transport::ControlAnswer;
use crate::host::hosts::Hosts;
use crate::host::wind_down::{DrainSource, WindDown};

impl Registration {
    pub(super) async fn heartbeat(
        &self,
        beat: Beat,
        challenge: Challenge,
        started: Instant,
    ) -> Step {
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
                tracing::warn!(target: "pinned::fleet", error = %ErrorChain(&*error), "a heartbeat failed");
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

    /// What the registry says of a drain that was asked of it.
    pub(super) fn follow_echo(&self, hosts: &Hosts, ack: &Map<String, Value>) {
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
