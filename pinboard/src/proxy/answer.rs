//! Answers that no worker has made.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::json;

use super::body::AnswerBody;
use super::cluster_call::CallError;
use super::head::FramingError;
use super::host::HostError;
use super::target::TargetError;
use crate::passport::Denied;
use crate::placement::NotPlaced;
use crate::upstream::ExchangeErrorKind;

/// Why no worker has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is no such thing.
    NotFound,
    /// The namespace is nobody's.
    UnknownNamespace,
    /// The request is wrong, and why.
    Bad(&'static str),
    /// It is for a kind of proxy that this is not.
    Connect,
    /// It has more headers than are read.
    TooManyHeaders,
    /// The namespace wants somebody that a provider vouches for.
    Unauthorized,
    /// The account may not.
    Forbidden,
    /// A call from instance to instance that is not one.
    Call(CallError),
    /// No worker can take the id (P4.5).
    NoWorkers,
    /// Nothing new is placed for a while (P4.4).
    Quarantined(Duration),
    /// The id's holder is being asked to let go (P3.5).
    Fenced(Duration),
    /// The store does not answer (P12.4).
    StoreAway,
    /// The holder does not answer (P5.11).
    Unreachable,
    /// What it answered is no answer.
    Malformed,
}

impl Failure {
    /// As a response: JSON, with `Retry-After` where trying again may help.
    pub(super) fn response(self) -> Response<AnswerBody> {
        let (status, retry_after) = self.status();
        error(status, self.text(), retry_after)
    }

    fn status(self) -> (StatusCode, Option<Duration>) {
        const SOON: Option<Duration> = Some(Duration::ZERO);
        match self {
            Self::NotFound | Self::UnknownNamespace => (StatusCode::NOT_FOUND, None),
            Self::Bad(_) => (StatusCode::BAD_REQUEST, None),
            Self::Connect => (StatusCode::METHOD_NOT_ALLOWED, None),
            Self::TooManyHeaders => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, None),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, None),
            Self::Forbidden | Self::Call(_) => (StatusCode::FORBIDDEN, None),
            Self::NoWorkers | Self::StoreAway => (StatusCode::SERVICE_UNAVAILABLE, SOON),
            Self::Quarantined(left) | Self::Fenced(left) => {
                (StatusCode::SERVICE_UNAVAILABLE, Some(left))
            }
            Self::Unreachable | Self::Malformed => (StatusCode::BAD_GATEWAY, SOON),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::UnknownNamespace => "no worker serves this namespace",
            Self::Bad(reason) => reason,
            Self::Connect => "CONNECT is for forward proxies",
            Self::TooManyHeaders => "too many headers",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Call(error) => error.text(),
            Self::NoWorkers => "no live workers",
            Self::Quarantined(_) => "placement is starting up, retry",
            Self::Fenced(_) => "instance is winding down, retry",
            Self::StoreAway => "registry store unavailable, retry",
            Self::Unreachable => "worker unreachable",
            Self::Malformed => "invalid response from worker",
        }
    }
}

/// A JSON body with what went wrong.
pub(crate) fn error(
    status: StatusCode,
    text: &str,
    retry_after: Option<Duration>,
) -> Response<AnswerBody> {
    let body = Bytes::from(json!({ "error": text }).to_string());
    let mut response = Response::new(AnswerBody::whole(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(after) = retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
    }
    response
}

/// Rounded up, and at least one.
fn whole_seconds(duration: Duration) -> u64 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    seconds.max(1)
}

// --- What the parts of the proxy say ---

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::NotFound => Self::NotFound,
            TargetError::InvalidId(reason) => Self::Bad(reason),
        }
    }
}

impl From<FramingError> for Failure {
    fn from(error: FramingError) -> Self {
        Self::Bad(error.text())
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::Bad(error.text())
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unauthenticated => Self::Unauthorized,
            Denied::Forbidden => Self::Forbidden,
        }
    }
}

impl From<NotPlaced> for Failure {
    fn from(why: NotPlaced) -> Self {
        match why {
            NotPlaced::UnknownNamespace => Self::UnknownNamespace,
            NotPlaced::NoWorkers => Self::NoWorkers,
            NotPlaced::Quarantined(left) => Self::Quarantined(left),
            NotPlaced::Fenced(left) => Self::Fenced(left),
            NotPlaced::StoreAway => Self::StoreAway,
        }
    }
}

impl From<ExchangeErrorKind> for Failure {
    fn from(kind: ExchangeErrorKind) -> Self {
        match kind {
            ExchangeErrorKind::Malformed => Self::Malformed,
            // Nobody reads this one: the client is gone.
            ExchangeErrorKind::Body => Self::Bad("the body of the request broke off"),
            _ => Self::Unreachable,
        }
    }
}
