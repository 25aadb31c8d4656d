//! Answering requests (W8, W10, H3).

use std::borrow::Cow;
use std::future::pending;
use std::sync::Arc;

use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use pinned_wire::attestation::{Caller, Claims, verify};
use pinned_wire::headers::{ATTESTATION, EPOCH, PROXY_SECRET};
use pinned_wire::registry::{CHALLENGE_PATH, STATS_PATH};
use pinned_wire::{epoch, ids};
use serde_json::json;

use super::body::{Stream, WorkerBody, empty};
use super::core::Core;
use super::handler::WorkerCall;
use super::knobs::ChallengeAnswer;
use super::refusal::{detail, json_response};
use super::state::{Admitted, Phase};
use super::work::Work;
use super::{InstanceKey, RefusalReason};

/// Bodies up to this length, in bytes, do not count as open streams.
const SMALL: u64 = 64 << 10;

impl Core {
    pub(super) async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Response<WorkerBody> {
        self.clock.runs().await;
        self.knobs.moves().await;
        let response = match request.uri().path().strip_prefix(&*self.prefix) {
            Some(CHALLENGE_PATH) => self.challenge(&request).await,
            Some(STATS_PATH) => self.stats(&request),
            Some(path) => {
                let path = path.to_owned();
                self.instance(request, &path).await
            }
            None => detail(StatusCode::NOT_FOUND, "Not Found"),
        };
        self.clock.runs().await;
        response
    }

    // --- The worker's own routes ---

    /// Whether it is the control plane that asks (W10.1).
    fn is_control_plane<B>(&self, request: &Request<B>) -> bool {
        let secret = request.headers().get(PROXY_SECRET);
        secret.is_some_and(|secret| self.secret.is(secret.as_bytes()))
            || self.attested(request).is_some()
    }

    async fn challenge<B>(&self, request: &Request<B>) -> Response<WorkerBody> {
        match self.knobs.challenge_answer() {
            ChallengeAnswer::Right => {}
            ChallengeAnswer::Wrong => {
                let wrong = json!({ "value": self.domain.token_hex(16) });
                return json_response(StatusCode::OK, &wrong);
            }
            ChallengeAnswer::Status(status) => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
                return detail(status, "as the test says");
            }
            ChallengeAnswer::Redirect => {
                let mut response = Response::new(empty());
                *response.status_mut() = StatusCode::FOUND;
                let elsewhere = HeaderValue::from_static("http://127.0.0.1:9/");
                response.headers_mut().insert(header::LOCATION, elsewhere);
                return response;
            }
            ChallengeAnswer::Silence => pending().await,
        }
        if !self.is_control_plane(request) {
            return detail(StatusCode::FORBIDDEN, "invalid proxy secret");
        }
        let query = request.uri().query().unwrap_or_default();
        let asked = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("challenge="));
        let Some(asked) = asked else {
            return detail(StatusCode::UNPROCESSABLE_ENTITY, "challenge is missing");
        };
        let latest = self.state.lock().challenge.clone();
        match latest {
            Some(latest) if latest.question.is(asked.as_bytes()) => {
                let answer = json!({ "value": latest.answer.expose() });
                json_response(StatusCode::OK, &answer)
            }
            _ => detail(StatusCode::NOT_FOUND, "unknown challenge"),
        }
    }

    fn stats<B>(&self, request: &Request<B>) -> Response<WorkerBody> {
        if !self.is_control_plane(request) {
            return detail(StatusCode::FORBIDDEN, "invalid proxy secret");
        }
        let (now, wall) = (self.now(), self.domain.now());
        let state = self.state.lock();
        let mut namespaces = serde_json::Map::new();
        for ns in &self.options.namespaces {
            let (activations, evictions) = state.activations.get(ns).copied().unwrap_or_default();
            let counts = json!({ "activations": activations, "evictions": evictions });
            namespaces.insert(ns.to_string(), counts);
        }
        let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).ok();
        let instances = state.records.iter().map(|(key, record)| {
            let activated_at = wall.checked_sub(now.world - record.activated_at);
            let activated_at = activated_at
                .and_then(|at| at.duration_since(std::time::SystemTime::UNIX_EPOCH).ok());
            json!({
                "namespace": &*key.ns,
                "id": &*key.id,
                "connections": record.streams,
                "tasks": record.handlers,
                "idleMs": millis(now.own.saturating_duration_since(record.last_active)),
                "activatedAt": activated_at.and_then(millis),
            })
        });
        let stats = json!({
            "draining": state.is_draining(),
            "leaseFlaps": state.lease.flaps,
            "reregistrations": state.reregistrations,
            "namespaces": namespaces,
            "instances": instances.collect::<Vec<_>>(),
            "process": { "uptimeMs": millis(now.world - self.started) },
        });
        json_response(StatusCode::OK, &stats)
    }

    // --- Instances ---

    /// What a valid attestation for the current session says (W8.4, W8.6).
    fn attested<B>(&self, request: &Request<B>) -> Option<Claims> {
        let session = self.state.lock().session.clone()?;
        let token = request.headers().get(ATTESTATION)?.to_str().ok()?;
        verify(self.secret.expose(), &[&session], self.domain.now(), token)
    }

    /// A request for an instance, in the order of H1.6.
    async fn instance(
        self: &Arc<Self>,
        request: Request<Incoming>,
        path: &str,
    ) -> Response<WorkerBody> {
        let Some((ns, raw_id, rest)) = self.split(path) else {
            return detail(StatusCode::NOT_FOUND, "Not Found");
        };
        let Some(claims) = self.attested(&request) else {
            return detail(StatusCode::FORBIDDEN, "invalid attestation");
        };
        let id: Cow<'_, str> = match ids::decode_id(raw_id) {
            Ok(id) => id,
            Err(error) => return detail(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        if let Some(reason) = ids::invalid_id_reason(&id) {
            return detail(StatusCode::BAD_REQUEST, reason);
        }
        let epoch = request.headers().get(EPOCH);
        let epoch = match epoch
            .map(|value| epoch::parse(value.as_bytes()))
            .transpose()
        {
            Ok(epoch) => epoch,
            Err(error) => return detail(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        let key = InstanceKey::new(Arc::clone(ns), &*id);
        if let Some(refusal) = self.knobs.refusal(&key) {
            return refusal.response(true);
        }
        let admitted = match self.admit(&key, epoch) {
            Ok(admitted) => admitted,
            Err(refusal) => return self.refuse(&key, refusal),
        };
        if rest == "/_wake" {
            let (status, body) = if admitted.fresh {
                (StatusCode::ACCEPTED, json!({ "activating": true }))
            } else {
                (StatusCode::OK, json!({ "ok": true }))
            };
            drop(Work::handler(self, &key, admitted.serial));
            return json_response(status, &body);
        }
        let rest = rest.to_owned();
        let caller = Caller::from(claims);
        self.handle(key, admitted, rest, caller, request).await
    }

    /// `/<ns>/<id>/<rest>`, for a namespace of this worker.
    fn split<'a>(&self, path: &'a str) -> Option<(&Arc<str>, &'a str, &'a str)> {
        let ns_end = path.get(1..)?.find('/')? + 1;
        let (ns, rest) = path.split_at(ns_end);
        let ns = self.options.namespaces.iter().find(|own| ***own == *ns)?;
        let rest = &rest[1..];
        let (id, rest) = match rest.find('/') {
            Some(end) => rest.split_at(end),
            None => (rest, "/"),
        };
        Some((ns, id, rest))
    }

    fn admit(&self, key: &InstanceKey, epoch: Option<u64>) -> Result<Admitted, RefusalReason> {
        let now = self.now();
        let mut state = self.state.lock();
        if state.phase != Phase::Serving {
            return Err(RefusalReason::LeaseExpired);
        }
        let admitted = state.admit(key, epoch, now);
        drop(state);
        self.changed.notify_waiters();
        admitted
    }

    /// A refusal names its reason where that is true of this id: `lease-expired` says that the id is not resident, and one
    /// that is resident serves again when the lease is renewed.
    fn refuse(&self, key: &InstanceKey, refusal: RefusalReason) -> Response<WorkerBody> {
        let resident = self.state.lock().records.contains_key(key);
        let names_it = match refusal {
            RefusalReason::LeaseUnhealthy => true,
            RefusalReason::LeaseExpired => self.options.names_every_refusal && !resident,
            _ => self.options.names_every_refusal,
        };
        refusal.response(names_it)
    }

    async fn handle(
        self: &Arc<Self>,
        key: InstanceKey,
        admitted: Admitted,
        path: String,
        caller: Caller,
        request: Request<Incoming>,
    ) -> Response<WorkerBody> {
        let work = Work::handler(self, &key, admitted.serial);
        let call = WorkerCall {
            instance: Arc::clone(&admitted.instance),
            path,
            caller,
            request,
            domain: self.domain.clone(),
            core: Arc::clone(self),
            serial: admitted.serial,
            closed: admitted.closed.clone(),
        };
        let response = tokio::select! {
            biased;
            () = admitted.cancel.wait() => {
                return detail(StatusCode::SERVICE_UNAVAILABLE, "instance aborted");
            }
            response = self.options.handler.handle(call) => response,
        };
        let small = response
            .body()
            .size_hint()
            .upper()
            .is_some_and(|most| most <= SMALL);
        if small {
            return response;
        }
        // The stream counts before the handler has ended, so that the instance is never idle in between.
        let stream = Work::stream(self, &key, admitted.serial);
        drop(work);
        let closed = admitted.closed;
        let cut = Box::pin(async move { closed.wait().await });
        response.map(|body| http_body_util::BodyExt::boxed_unsync(Stream::new(body, cut, stream)))
    }
}
