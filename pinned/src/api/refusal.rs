//! The answers that a host mints itself.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use pinned_wire::headers::REFUSAL;
use serde_json::json;

use super::lifespan::SetupError;
use crate::durability::FrontierError;

/// `body`, which is JSON, with `status`.
pub(crate) fn json_response(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

/// `{"detail": <detail>}` with `status`.
pub(crate) fn detail_response(status: StatusCode, detail: &str) -> Response {
    json_response(status, json!({ "detail": detail }).to_string())
}

/// The answer where there is no route (H1.7).
pub(crate) fn not_found() -> Response {
    detail_response(StatusCode::NOT_FOUND, "Not Found")
}

/// The answer to a fault: nothing of it leaves the process (H1.12).
pub(crate) fn internal_error() -> Response {
    let mut response = Response::new(Body::from("Internal Server Error"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// A status with an empty body: how the wire shows a WebSocket that is closed before it is accepted (H1.5).
pub(crate) fn empty_response(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $status:ident, $slug:expr, $detail:literal, retry: $retry:literal;)*) => {
        /// Why a host did not run a request.
        ///
        /// Every one is answered `{"detail": <text>}` with the header `pinned-refusal: <slug>`, which promises
        /// that the handler has not run: trying again, here or elsewhere, repeats nothing. Those of pinboard's P5.9
        /// say besides whether the id lives here; any other reads as `busy`: it does, or may. The exception is
        /// [`Refusal::Aborted`], which says that the instance was cut off, perhaps in mid-handler, and therefore
        /// carries neither that header nor `Retry-After` (H3.13).
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Refusal {
            $($(#[$doc])* $name,)*
            /// The call chain comes back to an instance whose turn an ancestor holds; waiting would never end.
            /// 508, with the chain in the detail.
            CallChain(String),
            /// The id is not one (H1.4). 400.
            InvalidId(&'static str),
        }

        impl Refusal {
            /// The HTTP status.
            pub fn status(&self) -> StatusCode {
                match self {
                    $(Self::$name => StatusCode::$status,)*
                    Self::CallChain(_) => StatusCode::LOOP_DETECTED,
                    Self::InvalidId(_) => StatusCode::BAD_REQUEST,
                }
            }

            /// The value of the `pinned-refusal` header, `None` where the handler may have run.
            pub fn slug(&self) -> Option<&'static str> {
                match self {
                    $(Self::$name => $slug,)*
                    Self::CallChain(_) => Some("call-chain"),
                    Self::InvalidId(_) => Some("invalid-id"),
                }
            }

            /// The text under `detail`.
            pub fn detail(&self) -> &str {
                match self {
                    $(Self::$name => $detail,)*
                    Self::CallChain(detail) => detail,
                    Self::InvalidId(detail) => detail,
                }
            }

            /// Whether the same request may succeed a little later (`Retry-After: 1`).
            pub fn is_retryable(&self) -> bool {
                match self {
                    $(Self::$name => $retry,)*
                    Self::CallChain(_) | Self::InvalidId(_) => false,
                }
            }
        }
    };
}

refusals! {
    /// The worker's lease has passed (H3.2).
    LeaseExpired = SERVICE_UNAVAILABLE, Some("lease-expired"), "lease expired; not serving", retry: true;
    /// The same, and the instance lives here all the same: whoever frees its placement on this answer would give the id a
    /// second home once the lease runs again (P5.9).
    LeaseExpiredHere = SERVICE_UNAVAILABLE, Some("busy"), "lease expired; not serving", retry: true;
    /// The same, and the instance is on its way out: its placement is handed back in a moment, and the request can be served
    /// where it goes then. A drain's deadline is the end of the lease as well (H10.6), so this is what every request meets
    /// that comes while the last work of a drain is cut off (P5.10).
    LeaseExpiredLeaving = SERVICE_UNAVAILABLE, Some("closing"), "lease expired; not serving", retry: true;
    /// The lease is unhealthy: residents serve, new ids do not activate (H3.4).
    LeaseUnhealthy = SERVICE_UNAVAILABLE, Some("lease-unhealthy"), "lease unhealthy; refusing new activations", retry: true;
    /// The host drains (H3.4).
    Draining = SERVICE_UNAVAILABLE, Some("draining"), "host draining; retry", retry: true;
    /// `max_instances` are live (H3.4).
    Capacity = SERVICE_UNAVAILABLE, Some("capacity"), "instance capacity reached; retry", retry: true;
    /// The instance's wind-down deadline has passed (H3.8).
    PastDeadline = SERVICE_UNAVAILABLE, Some("past-deadline"), "instance past its wind-down deadline; retry", retry: true;
    /// The instance is closing (H3.9, H5.1).
    Closing = SERVICE_UNAVAILABLE, Some("closing"), "instance closing; retry", retry: true;
    /// Too many activations are queued before this one (H4.3). In a fleet it has left the queue, and the id is not here.
    ActivationQueue = SERVICE_UNAVAILABLE, Some("activation-queue"), "activation queue full; retry", retry: true;
    /// The same in a fleet, where the activation stays queued because a wake-up asked for it: the id is here (H14.3).
    ActivationQueued = SERVICE_UNAVAILABLE, Some("busy"), "activation queue full; retry", retry: true;
    /// A higher placement epoch is known (H12.3).
    StaleEpoch = SERVICE_UNAVAILABLE, Some("stale-epoch"), "stale placement epoch; retry", retry: true;
    /// This placement epoch was handed back (H12.3).
    ReleasedEpoch = SERVICE_UNAVAILABLE, Some("released-epoch"), "released placement epoch; retry", retry: true;
    /// No turn came free within `turn_timeout`.
    TurnTimeout = SERVICE_UNAVAILABLE, Some("turn-timeout"), "turn timed out; retry", retry: true;
    /// `max_waiting` callers wait for a turn already.
    TurnQueue = SERVICE_UNAVAILABLE, Some("turn-queue-full"), "too many waiting turns; retry", retry: true;
    /// The instance was aborted under the request (H5.3).
    Aborted = SERVICE_UNAVAILABLE, None, "instance aborted", retry: false;
    /// The worker is not serving: before its start or after its shutdown (H3.1).
    NotServing = SERVICE_UNAVAILABLE, Some("not-serving"), "worker not serving; retry", retry: true;
    /// No valid attestation on a worker that is registered (H2.1).
    Unattested = FORBIDDEN, Some("invalid-attestation"), "invalid attestation", retry: false;
    /// The authorizer itself failed (H2.15).
    AuthorizationFailed = SERVICE_UNAVAILABLE, Some("authorization-failed"), "authorization failed", retry: false;
    /// `pinboard-epoch` is not a number (H12.1).
    MalformedEpoch = BAD_REQUEST, Some("malformed-epoch"), "malformed placement epoch", retry: false;
}

/// Why there is no instance to call.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The host refused; nothing ran.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The setup failed. Everyone who waited for it is told the same.
    #[error("the setup failed: {0}")]
    SetupFailed(Arc<SetupError>),
}

impl IntoResponse for Unavailable {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refusal) => refusal.into_response(),
            Self::SetupFailed(error) => error.to_response(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.detail())
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// The answer of a handler that has run and met this refusal: it promises nothing of what has not run.
    pub(crate) fn into_response_after_work(self) -> Response {
        let mut response = self.into_response();
        response.headers_mut().remove(REFUSAL);
        response
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = detail_response(self.status(), self.detail());
        let headers = response.headers_mut();
        if self.is_retryable() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some(slug) = self.slug() {
            headers.insert(REFUSAL, HeaderValue::from_static(slug));
        }
        response
    }
}

impl IntoResponse for FrontierError {
    fn into_response(self) -> Response {
        if matches!(self, Self::WithinAnother) {
            tracing::error!(target: "pinned::durability", error = %self, "a request was programmed to wait in a circle");
            return internal_error();
        }
        let detail =
            "the outcome is unknown: durable effects of this request could not be confirmed";
        let body = axum::Json(json!({ "detail": detail }));
        (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
    }
}
