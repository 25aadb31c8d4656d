//! From a request to its handler: the order of H1.6.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as PollContext, Poll, ready};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use http::{Method as HttpMethod, Request, StatusCode, header};
use http_body::Body as _;
use tokio::time::Instant;

use super::core::Host;
use super::directory::{Admitted, TurnedAway};
use super::head::{Identified, Sender, Target, has_encoded_slash, placement_epoch, valid_id};
use super::metrics::Transport;
use super::record::Record;
use super::routes::{Found, Matched};
use crate::Attestation;
use crate::api::call::{Call, Entry};
use crate::api::chain::Origin;
use crate::api::handler::HandlerFuture;
use crate::api::refusal::{Refusal, internal_error, json_response, not_found};
use crate::api::request::{LazyState, RequestBody};
use crate::api::route::{Method, Route};
use crate::api::scope::Scope;
use crate::api::seam::{Seam, boxed};

/// An admitted request: its record counts it among those that stand before the instance.
pub(super) struct Attached {
    pub(super) record: Arc<Record>,
    pub(super) entry: Entry,
}

impl Attached {
    fn new(record: Arc<Record>, started: Instant) -> Self {
        let seam: Seam = Arc::clone(&record) as Seam;
        Self {
            entry: Entry::adopt(seam, Some(started)),
            record,
        }
    }
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
        mut request: Request<RequestBody>,
        sender: Sender,
    ) -> Answer {
        let rest = &request.uri().path()[target.rest.clone()];
        let found = self
            .routes
            .find_fixed(rest, request.method(), request.headers());
        let route = match found {
            Some(Found::Route(route)) => Some(route),
            // The wake-up has none (H1.13).
            Some(Found::Wake) => None,
            Some(Found::MethodNotAllowed(allow)) => {
                return Answer::ready(super::routes::not_allowed(&allow));
            }
            None => match self.route_with_parameters(target, request) {
                Ok((route, matched)) => {
                    request = matched;
                    Some(route)
                }
                Err(response) => return Answer::ready(response),
            },
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
            let identified = Identified {
                request,
                attestation,
                origin,
            };
            return Answer::Waiting(boxed(async move {
                host.serve_socket(route, &id, epoch, identified).await
            }));
        }
        let started = self.env.domain.monotonic();
        match self.admit(&id, epoch) {
            Admitted::Record(record) => {
                // It borrows the request's path.
                drop(id);
                // As `serve` does, without a second reference to the record: nobody needs it beside the entry.
                if let Some(route) = route
                    && route.auth.is_none()
                {
                    let entry = Entry::adopt(record, Some(started));
                    return call(route, entry, request, attestation, origin);
                }
                let identified = Identified {
                    request,
                    attestation,
                    origin,
                };
                self.serve(route, Attached::new(record, started), identified)
            }
            Admitted::TurnedAway(why) => {
                let why = self.name_own_close(why, &id, &origin);
                Answer::ready(self.turn_away(why, started, Transport::Http))
            }
            closing @ Admitted::AwaitClose(_) => {
                let (host, id) = (Arc::clone(self), id.into_owned());
                let identified = Identified {
                    request,
                    attestation,
                    origin,
                };
                Answer::Waiting(boxed(async move {
                    let origin = &identified.origin;
                    match host.after_closes(closing, &id, epoch, origin).await {
                        Ok(record) => {
                            match host.serve(route, Attached::new(record, started), identified) {
                                Answer::Handler(handler) => handler.await,
                                Answer::Waiting(waiting) => waiting.await,
                            }
                        }
                        Err(why) => host.turn_away(why, started, Transport::Http),
                    }
                }))
            }
        }
    }

    /// The route of a request that carries the parameters of its path then.
    fn route_with_parameters(
        &self,
        target: &Target,
        request: Request<RequestBody>,
    ) -> Result<(&'static Route, Request<RequestBody>), Response> {
        let rest = request.uri().path()[target.rest.clone()].to_owned();
        let request = request.map(RequestBody::into_body);
        match self.routes.find_parametric(&rest, request) {
            Matched::Route(route, request) => Ok((route, request.map(RequestBody::Body))),
            Matched::Answer(response) => Err(response),
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
    pub(super) async fn attach(
        self: &Arc<Self>,
        id: &str,
        epoch: Option<u64>,
        origin: &Origin,
    ) -> Result<Attached, Response> {
        let started = self.env.domain.monotonic();
        let admitted = self.admit(id, epoch);
        match self.after_closes(admitted, id, epoch, origin).await {
            Ok(record) => Ok(Attached::new(record, started)),
            Err(why) => {
                let why = self.name_own_close(why, id, origin);
                Err(self.turn_away(why, started, Transport::WebSocket))
            }
        }
    }

    /// A close refuses the calls of its own teardown like others. Whoever answers them by waiting for the end of the close,
    /// as pinboard does, would wait for them in turn.
    fn name_own_close(&self, why: TurnedAway, id: &str, origin: &Origin) -> TurnedAway {
        if !matches!(why, TurnedAway::Refused(Refusal::Closing)) || !origin.is_called() {
            return why;
        }
        let closing = self.directory.get(id).map(|record| record as Seam);
        match closing.map(|closing| origin.refuse_wait_for_itself(&closing)) {
            Some(Err(chain)) => chain.into(),
            _ => why,
        }
    }

    /// The answer to a request that was not admitted.
    fn turn_away(&self, why: TurnedAway, started: Instant, transport: Transport) -> Response {
        match why {
            TurnedAway::Refused(refusal) => {
                let took = self
                    .env
                    .domain
                    .monotonic()
                    .saturating_duration_since(started);
                self.metrics.took(took);
                refusal.into_response()
            }
            TurnedAway::Stopped => {
                self.metrics.request_failed("construct", transport);
                internal_error()
            }
        }
    }

    /// Authorizes an admitted request and brings it to its handler.
    fn serve(
        self: &Arc<Self>,
        route: Option<&'static Route>,
        attached: Attached,
        identified: Identified,
    ) -> Answer {
        match route.map(|route| (route, route.auth)) {
            Some((route, None)) => {
                let Identified {
                    request,
                    attestation,
                    origin,
                } = identified;
                call(route, attached.entry, request, attestation, origin)
            }
            Some((route, Some(authorize))) => {
                let seam: Seam = Arc::clone(&attached.record) as Seam;
                let scope = Scope::entering(seam, identified.origin.clone());
                let host = Arc::clone(self);
                Answer::Waiting(boxed(scope.run(async move {
                    host.authorize(route, authorize, attached, identified).await
                })))
            }
            None => {
                let seam: Seam = Arc::clone(&attached.record) as Seam;
                let scope = Scope::entering(seam, identified.origin);
                Answer::Waiting(boxed(scope.run(serve_wake(attached))))
            }
        }
    }
}

/// Calls the handler of a route that nobody has to authorize.
fn call(
    route: &'static Route,
    entry: Entry,
    request: Request<RequestBody>,
    attestation: Attestation,
    origin: Origin,
) -> Answer {
    let (parts, body) = request.into_parts();
    Answer::Handler((route.handler)(Call {
        route: &route.spec,
        state: LazyState::new(attestation, None),
        parts,
        body,
        origin,
        entry,
        session: None,
    }))
}

/// `POST /_wake`: activates without authorizing anybody (H14).
async fn serve_wake(attached: Attached) -> Response {
    match attached.record.wake().await {
        Ok(true) => json_response(StatusCode::OK, r#"{"ok":true}"#),
        Ok(false) => json_response(StatusCode::ACCEPTED, r#"{"activating":true}"#),
        Err(refusal) => refusal.into_response(),
    }
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
