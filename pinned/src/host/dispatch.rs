//! From a request to its handler: the order of H1.6.

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderMap, Method as HttpMethod, Request, StatusCode, header};
use http_body::Body as _;

use super::core::Host;
use super::directory::Admitted;
use super::metrics::Transport;
use super::record::Record;
use super::routes::{Found, Matched};
use crate::Attestation;
use crate::api::auth::{AuthOutput, AuthRejected, Connection, Denied};
use crate::api::call::{Call, Entry, RequestBody, RequestState, Sample};
use crate::api::context::Context;
use crate::api::refusal::{Refusal, detail_response, internal_error, not_found};
use crate::api::route::{AuthFn, Method, Route};
use crate::api::scope::{ChainHold, Origin, Scope, chain_hold, describe_chain};
use crate::api::seam::{Seam, TurnKind};

/// Where in a request's path the id and what follows it stand.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) id: Range<usize>,
    /// Empty, or from a slash on.
    pub(crate) rest: Range<usize>,
}

/// Who makes a request.
pub(crate) enum Sender {
    /// Somebody outside; the headers say who vouches for them.
    Outside,
    /// An instance of this process: nobody can forge that, so nothing is signed (W14.5).
    Inside {
        attestation: Attestation,
        origin: Origin,
    },
}

/// An admitted request: the record counts it.
pub(super) struct Admission {
    pub(super) record: Arc<Record>,
    pub(super) seam: Seam,
    pub(super) entry: Entry,
    pub(super) sample: Sample,
}

impl Host {
    /// Answers one request for `target`.
    pub(crate) async fn dispatch(
        self: &Arc<Self>,
        target: Target,
        request: Request<RequestBody>,
        sender: Sender,
    ) -> Response {
        let is_head = request.method() == HttpMethod::HEAD;
        let response = self.answer(target, request, sender).await;
        if is_head { without_body(response) } else { response }
    }

    async fn answer(
        self: &Arc<Self>,
        target: Target,
        request: Request<RequestBody>,
        sender: Sender,
    ) -> Response {
        let rest = &request.uri().path()[target.rest.clone()];
        let fixed = self
            .routes
            .find_fixed(rest, request.method(), request.headers());
        let (route, request) = match fixed {
            Some(Found::Route(route)) => (Some(route), request),
            Some(Found::Wake) => (None, request),
            Some(Found::MethodNotAllowed(allow)) => return super::routes::not_allowed(&allow),
            None => {
                let rest = rest.to_owned();
                match self
                    .routes
                    .find_parametric(&rest, request.map(RequestBody::into_body))
                {
                    Matched::Route(route, request) => {
                        (Some(route), request.map(RequestBody::Body))
                    }
                    Matched::Answer(response) => return response,
                }
            }
        };
        let (attestation, origin) = match self.identify(request.headers(), sender) {
            Ok(identity) => identity,
            Err(refusal) => return self.refuse(route, refusal),
        };
        let path = request.uri().path();
        let id = match valid_id(&path[target.id.clone()]) {
            Ok(id) => id,
            // An encoded slash makes two segments of the id, and such a path has no route (H1.2).
            Err(_) if has_encoded_slash(&path[target.id.clone()]) => return not_found(),
            Err(refusal) => return self.refuse(route, refusal),
        };
        let epoch = match placement_epoch(request.headers()) {
            Ok(epoch) => epoch,
            Err(refusal) => return self.refuse(route, refusal),
        };
        let is_socket = route.is_some_and(|route| route.spec.method() == Method::WebSocket);
        if is_socket {
            let id = id.into_owned();
            let Some(route) = route else {
                return internal_error();
            };
            return self.serve_socket(route, &id, epoch, request, attestation, origin).await;
        }
        let admission = match self.enter(&id, epoch, Transport::Http).await {
            Ok(admission) => admission,
            Err(response) => return response,
        };
        drop(id);
        let scope = Scope::entering(Arc::clone(&admission.seam), origin.clone());
        let served = async move {
            match route {
                Some(route) => self.serve_http(route, admission, request, attestation, origin).await,
                None => self.serve_wake(admission).await,
            }
        };
        scope.run(served).await
    }

    /// A refusal before admission; a WebSocket that was not accepted shows an empty 403 for what is no 503 (H1.5).
    fn refuse(&self, route: Option<&Route>, refusal: Refusal) -> Response {
        let is_socket = route.is_some_and(|route| route.spec.method() == Method::WebSocket);
        if is_socket && refusal.status() != StatusCode::SERVICE_UNAVAILABLE {
            let mut response = refusal.into_response();
            *response.status_mut() = StatusCode::FORBIDDEN;
            *response.body_mut() = Body::empty();
            response.headers_mut().remove(header::CONTENT_TYPE);
            return response;
        }
        refusal.into_response()
    }

    /// Admits a request, waiting for a close under way where that is the rule (H3.9).
    pub(super) async fn enter(
        self: &Arc<Self>,
        id: &str,
        epoch: Option<u64>,
        transport: Transport,
    ) -> Result<Admission, Response> {
        let started = self.env.domain.monotonic();
        let refuse = |refusal: Refusal| {
            self.metrics
                .took(self.env.domain.monotonic().saturating_duration_since(started));
            refusal.into_response()
        };
        loop {
            match self.admit(id, epoch) {
                Admitted::Record(record) => {
                    let seam: Seam = Arc::clone(&record) as Seam;
                    return Ok(Admission {
                        entry: Entry::adopt(Arc::clone(&seam)),
                        sample: Sample::new(Arc::clone(&seam), started),
                        record,
                        seam,
                    });
                }
                Admitted::Refused(refusal) => return Err(refuse(refusal)),
                Admitted::Stopped => {
                    self.metrics.request_failed("construct", transport);
                    return Err(internal_error());
                }
                Admitted::AwaitClose(record) => {
                    let seam: Seam = Arc::clone(&record) as Seam;
                    if chain_hold(&seam) != ChainHold::Nothing {
                        // Its own teardown waits for this call.
                        let chain = describe_chain(&seam, TurnKind::Exclusive);
                        return Err(refuse(Refusal::CallChain(chain)));
                    }
                    record.wait_for_successor().await.map_err(refuse)?;
                }
            }
        }
    }

    async fn serve_http(
        &self,
        route: &'static Route,
        admission: Admission,
        request: Request<RequestBody>,
        attestation: Attestation,
        origin: Origin,
    ) -> Response {
        let (parts, body) = request.into_parts();
        let (parts, auth) = match route.auth {
            None => (parts, None),
            Some(authorize) => {
                let connection = Connection {
                    parts,
                    attestation: attestation.clone(),
                    session: None,
                };
                let context = Context::new(Arc::clone(&admission.seam));
                match run_authorizer(authorize, &context, &connection).await {
                    Ok(output) => (connection.parts, Some(output)),
                    Err(denied) => return self.deny(&admission.record, denied),
                }
            }
        };
        let call = Call {
            handler: route.spec.handler(),
            state: RequestState::new(admission.seam, attestation, auth),
            parts,
            body,
            origin,
            entry: admission.entry,
            sample: admission.sample,
            session: None,
        };
        (route.handler)(call).await
    }

    /// `POST /_wake`: activates without authorizing anybody (H14).
    async fn serve_wake(&self, admission: Admission) -> Response {
        match admission.record.wake().await {
            Ok(true) => json_response(StatusCode::OK, r#"{"ok":true}"#),
            Ok(false) => json_response(StatusCode::ACCEPTED, r#"{"activating":true}"#),
            Err(refusal) => refusal.into_response(),
        }
    }

    /// What an HTTP caller sees of a denial (H2.8, H2.12, H2.14, H2.15).
    fn deny(&self, record: &Record, denied: Denied) -> Response {
        match denied {
            Denied::Rejected(rejected) => self.deny_deliberately(record, &rejected),
            Denied::Response(response) => *response,
            Denied::Http(status, detail) => detail_response(status, &detail),
            Denied::Close(code, reason) => {
                let error = format!("the authorizer closes a WebSocket ({code}, {reason}) on HTTP");
                self.authorizer_failed(record, Transport::Http, &error);
                Refusal::AuthorizationFailed.into_response()
            }
            Denied::Fault(error) => {
                self.authorizer_failed(record, Transport::Http, &error.to_string());
                Refusal::AuthorizationFailed.into_response()
            }
        }
    }

    fn deny_deliberately(&self, record: &Record, rejected: &AuthRejected) -> Response {
        let body = match rejected.json() {
            None => serde_json::json!({ "message": rejected.message() }).to_string(),
            Some(Ok(payload)) => payload,
            Some(Err(error)) => {
                self.authorizer_failed(record, Transport::Http, &error);
                return internal_error();
            }
        };
        json_response(rejected.status(), body)
    }

    pub(super) fn authorizer_failed(&self, record: &Record, transport: Transport, error: &str) {
        self.metrics.request_failed("auth", transport);
        tracing::error!(
            target: "pinned::host",
            instance_id = record.key(),
            namespace = &*self.namespace,
            transport = transport.as_str(),
            error,
            "the authorizer failed"
        );
    }

    /// Who calls, and how deep in a chain (H2.1, W8.6, W14.3).
    fn identify(&self, headers: &HeaderMap, sender: Sender) -> Result<(Attestation, Origin), Refusal> {
        match sender {
            Sender::Inside {
                attestation,
                origin,
            } => Ok((attestation, origin)),
            Sender::Outside => {
                let verified = self.verify(headers);
                if verified.is_none() && self.env.is_placed() {
                    return Err(Refusal::Unattested);
                }
                let attestation = verified.unwrap_or(Attestation::Anonymous);
                let depth = match &attestation {
                    Attestation::Instance { depth, .. } => u32::try_from(*depth).unwrap_or(u32::MAX),
                    _ => 0,
                };
                Ok((attestation, Origin::outside(depth)))
            }
        }
    }

    fn verify(&self, headers: &HeaderMap) -> Option<Attestation> {
        let token = headers.get(pinned_wire::headers::ATTESTATION)?.to_str().ok()?;
        let session = self
            .env
            .placements
            .as_ref()
            .and_then(|placements| placements.session_audience());
        let claims = match &session {
            Some(session) => self.env.verify(&[session, &self.audience], token),
            None => self.env.verify(&[&self.audience], token),
        };
        claims.map(Attestation::from)
    }
}

/// Runs an authorizer; its panic is a fault like any other.
pub(super) async fn run_authorizer(
    authorize: AuthFn,
    context: &Context,
    connection: &Connection,
) -> Result<AuthOutput, Denied> {
    AssertUnwindSafe(async { authorize(context, connection).await })
        .catch_unwind()
        .await
        .unwrap_or_else(|_panic| Err(Denied::fault("the authorizer panicked")))
}

pub(super) fn valid_id(segment: &str) -> Result<std::borrow::Cow<'_, str>, Refusal> {
    let id = pinned_wire::ids::decode_id(segment)
        .map_err(|_| Refusal::InvalidId("id must contain only [A-Za-z0-9._~-]"))?;
    match pinned_wire::ids::invalid_id_reason(&id) {
        None => Ok(id),
        Some(reason) => Err(Refusal::InvalidId(reason)),
    }
}

fn has_encoded_slash(segment: &str) -> bool {
    pinned_wire::ids::decode_id(segment).is_ok_and(|id| id.contains('/'))
}

fn placement_epoch(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    match headers.get(pinned_wire::headers::EPOCH) {
        None => Ok(None),
        Some(value) => pinned_wire::epoch::parse(value.as_bytes())
            .map(Some)
            .map_err(|_| Refusal::MalformedEpoch),
    }
}

fn json_response(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    response
}

/// The answer to a `HEAD`: what a `GET` answers, without its body.
fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact()
        && !parts.headers.contains_key(header::CONTENT_LENGTH)
        && !parts.headers.contains_key(header::TRANSFER_ENCODING)
    {
        parts.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Response::from_parts(parts, Body::empty())
}

/// The head of a request, for a WebSocket's upgrade.
pub(super) fn into_head(request: Request<RequestBody>) -> Parts {
    request.into_parts().0
}
