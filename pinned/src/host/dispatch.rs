//! From a request to its handler: the order of H1.6.

use std::future::Future;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as PollContext, Poll, ready};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, Method as HttpMethod, Request, StatusCode, header};
use http_body::Body as _;
use tokio::time::Instant;

use super::core::Host;
use super::directory::Admitted;
use super::metrics::Transport;
use super::record::Record;
use super::routes::{Found, Matched};
use crate::Attestation;
use crate::api::auth::{AuthOutput, AuthRejected, Connection, Denied};
use crate::api::call::{Call, Entry, RequestBody, RequestState};
use crate::api::context::Context;
use crate::api::handler::HandlerFuture;
use crate::api::headers::{find, strike};
use crate::api::refusal::{Refusal, detail_response, internal_error, not_found};
use crate::api::route::{AuthFn, Method, Route};
use crate::api::scope::{ChainHold, Origin, Scope, chain_hold, describe_chain};
use crate::api::seam::{Seam, TurnKind, boxed};

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
    pub(super) entry: Entry,
}

impl Admission {
    fn new(record: Arc<Record>, started: Instant) -> Self {
        let seam: Seam = Arc::clone(&record) as Seam;
        Self {
            entry: Entry::adopt(seam, Some(started)),
            record,
        }
    }
}

/// A request whose route and sender are known.
pub(super) struct Asked {
    pub(super) request: Request<RequestBody>,
    pub(super) attestation: Attestation,
    pub(super) origin: Origin,
}

/// The answer to a request.
///
/// What can be done without waiting is done when it is made; for a route without an authorizer that is everything up
/// to the handler, so that the hot path has no future around the handler's own.
#[must_use = "a request is not answered until its future is polled"]
pub(crate) struct Dispatch {
    answer: Answer,
    is_head: bool,
}

enum Answer {
    Handler(HandlerFuture),
    Waiting(BoxFuture<'static, Response>),
}

impl Answer {
    fn ready(response: Response) -> Self {
        Self::Handler(HandlerFuture::ready(response))
    }
}

impl Future for Dispatch {
    type Output = Response;

    fn poll(self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Response> {
        let this = self.get_mut();
        let response = match &mut this.answer {
            Answer::Handler(handler) => ready!(Pin::new(handler).poll(cx)),
            Answer::Waiting(waiting) => ready!(waiting.as_mut().poll(cx)),
        };
        Poll::Ready(if this.is_head {
            without_body(response)
        } else {
            response
        })
    }
}

impl Host {
    /// Answers one request for `target`.
    pub(crate) fn dispatch(
        self: &Arc<Self>,
        target: Target,
        request: Request<RequestBody>,
        sender: Sender,
    ) -> Dispatch {
        Dispatch {
            is_head: request.method() == HttpMethod::HEAD,
            answer: self.answer(&target, request, sender),
        }
    }

    fn answer(
        self: &Arc<Self>,
        target: &Target,
        request: Request<RequestBody>,
        sender: Sender,
    ) -> Answer {
        let (route, request) = match self.route(target, request) {
            Ok(routed) => routed,
            Err(response) => return Answer::ready(response),
        };
        let (attestation, origin) = match self.identify(request.headers(), sender) {
            Ok(identity) => identity,
            Err(refusal) => return Answer::ready(self.refuse(route, refusal)),
        };
        let segment = &request.uri().path()[target.id.clone()];
        let id = match valid_id(segment) {
            Ok(id) => id,
            // An encoded slash makes two segments of the id, and such a path has no route (H1.2).
            Err(_) if has_encoded_slash(segment) => return Answer::ready(not_found()),
            Err(refusal) => return Answer::ready(self.refuse(route, refusal)),
        };
        let epoch = match placement_epoch(request.headers()) {
            Ok(epoch) => epoch,
            Err(refusal) => return Answer::ready(self.refuse(route, refusal)),
        };
        if let Some(route) = route
            && route.spec.method() == Method::WebSocket
        {
            let (host, id) = (Arc::clone(self), id.into_owned());
            let asked = Asked {
                request,
                attestation,
                origin,
            };
            return Answer::Waiting(boxed(async move {
                host.serve_socket(route, &id, epoch, asked).await
            }));
        }
        let started = self.env.domain.monotonic();
        let admitted = self.admit(&id, epoch);
        let awaited = match admitted {
            Admitted::AwaitClose(_) => Some(id.into_owned()),
            _ => None,
        };
        let asked = Asked {
            request,
            attestation,
            origin,
        };
        match (admitted, awaited) {
            (Admitted::Record(record), _) => {
                self.serve(route, Admission::new(record, started), asked)
            }
            (admitted, None) => Answer::ready(self.turned_away(admitted, started, Transport::Http)),
            (admitted, Some(id)) => {
                let host = Arc::clone(self);
                Answer::Waiting(boxed(async move {
                    let entered = host.enter_after(admitted, &id, epoch, started, Transport::Http);
                    match entered.await {
                        Ok(admission) => match host.serve(route, admission, asked) {
                            Answer::Handler(handler) => handler.await,
                            Answer::Waiting(waiting) => waiting.await,
                        },
                        Err(response) => response,
                    }
                }))
            }
        }
    }

    /// The route of a request, which carries the parameters of its path then; `None` is the wake-up (H1.13).
    #[allow(
        clippy::result_large_err,
        reason = "the error is the answer, made and sent once"
    )]
    fn route(
        &self,
        target: &Target,
        request: Request<RequestBody>,
    ) -> Result<(Option<&'static Route>, Request<RequestBody>), Response> {
        let rest = &request.uri().path()[target.rest.clone()];
        match self
            .routes
            .find_fixed(rest, request.method(), request.headers())
        {
            Some(Found::Route(route)) => Ok((Some(route), request)),
            Some(Found::Wake) => Ok((None, request)),
            Some(Found::MethodNotAllowed(allow)) => Err(super::routes::not_allowed(&allow)),
            None => {
                let rest = rest.to_owned();
                let request = request.map(RequestBody::into_body);
                match self.routes.find_parametric(&rest, request) {
                    Matched::Route(route, request) => {
                        Ok((Some(route), request.map(RequestBody::Body)))
                    }
                    Matched::Answer(response) => Err(response),
                }
            }
        }
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
        let admitted = self.admit(id, epoch);
        self.enter_after(admitted, id, epoch, started, transport)
            .await
    }

    async fn enter_after(
        self: &Arc<Self>,
        mut admitted: Admitted,
        id: &str,
        epoch: Option<u64>,
        started: Instant,
        transport: Transport,
    ) -> Result<Admission, Response> {
        loop {
            match admitted {
                Admitted::Record(record) => return Ok(Admission::new(record, started)),
                Admitted::AwaitClose(record) => {
                    let successor = wait_for_successor(record).await;
                    successor.map_err(|refusal| {
                        self.turned_away(Admitted::Refused(refusal), started, transport)
                    })?;
                    admitted = self.admit(id, epoch);
                }
                other => return Err(self.turned_away(other, started, transport)),
            }
        }
    }

    /// The answer to a request that was not admitted.
    fn turned_away(&self, admitted: Admitted, started: Instant, transport: Transport) -> Response {
        match admitted {
            Admitted::Refused(refusal) => {
                let took = self
                    .env
                    .domain
                    .monotonic()
                    .saturating_duration_since(started);
                self.metrics.took(took);
                refusal.into_response()
            }
            _ => {
                self.metrics.request_failed("construct", transport);
                internal_error()
            }
        }
    }

    /// Authorizes an admitted request and brings it to its handler.
    fn serve(
        self: &Arc<Self>,
        route: Option<&'static Route>,
        admission: Admission,
        asked: Asked,
    ) -> Answer {
        let host = Arc::clone(self);
        match route.map(|route| (route, route.auth)) {
            Some((route, None)) => {
                let Admission { record, entry } = admission;
                let (parts, body) = asked.request.into_parts();
                Answer::Handler((route.handler)(Call {
                    handler: route.spec.handler(),
                    state: RequestState::new(record as Seam, asked.attestation, None),
                    parts,
                    body,
                    origin: asked.origin,
                    entry,
                    session: None,
                }))
            }
            Some((route, Some(authorize))) => {
                let seam: Seam = Arc::clone(&admission.record) as Seam;
                let scope = Scope::entering(seam, asked.origin.clone());
                Answer::Waiting(boxed(scope.run(async move {
                    host.authorize(route, authorize, admission, asked).await
                })))
            }
            None => {
                let seam: Seam = Arc::clone(&admission.record) as Seam;
                let scope = Scope::entering(seam, asked.origin);
                Answer::Waiting(boxed(
                    scope.run(async move { host.serve_wake(admission).await }),
                ))
            }
        }
    }

    async fn authorize(
        &self,
        route: &'static Route,
        authorize: AuthFn,
        admission: Admission,
        asked: Asked,
    ) -> Response {
        let Admission { record, entry } = admission;
        let (parts, body) = asked.request.into_parts();
        let connection = Connection {
            parts,
            attestation: asked.attestation,
            session: None,
        };
        let context = Context::new(Arc::clone(&record) as Seam);
        let output = match run_authorizer(authorize, &context, &connection).await {
            Ok(output) => output,
            Err(denied) => return self.deny(&record, denied),
        };
        let Connection {
            parts, attestation, ..
        } = connection;
        let call = Call {
            handler: route.spec.handler(),
            state: RequestState::new(record as Seam, attestation, Some(output)),
            parts,
            body,
            origin: asked.origin,
            entry,
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
            // It may relay the answer of another instance, whose refusal is not this host's.
            Denied::Response(mut response) => {
                strike(response.headers_mut(), &pinned_wire::headers::REFUSAL);
                *response
            }
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
    fn identify(
        &self,
        headers: &HeaderMap,
        sender: Sender,
    ) -> Result<(Attestation, Origin), Refusal> {
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
                    Attestation::Instance { depth, .. } => {
                        u32::try_from(*depth).unwrap_or(u32::MAX)
                    }
                    _ => 0,
                };
                Ok((attestation, Origin::outside(depth)))
            }
        }
    }

    fn verify(&self, headers: &HeaderMap) -> Option<Attestation> {
        let token = find(headers, &pinned_wire::headers::ATTESTATION)?
            .to_str()
            .ok()?;
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

/// Waits until `record` has gone, unless that wait would never end: its own teardown may be what waits (H3.9).
pub(super) async fn wait_for_successor(record: Arc<Record>) -> Result<(), Refusal> {
    let seam: Seam = Arc::clone(&record) as Seam;
    if chain_hold(&seam) != ChainHold::Nothing {
        return Err(Refusal::CallChain(describe_chain(
            &seam,
            TurnKind::Exclusive,
        )));
    }
    record.wait_for_successor().await
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
    match find(headers, &pinned_wire::headers::EPOCH) {
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
