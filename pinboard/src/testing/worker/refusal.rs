//! What a worker says when it does not run a request.

use http::{HeaderValue, Response, StatusCode, header};
use pinned_wire::headers::REFUSAL;
use serde_json::json;

use super::body::{WorkerBody, full};

/// Why a request was not run (H3.13, P5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The lease has passed.
    LeaseExpired,
    /// The lease is about to pass, and the id is not resident.
    LeaseUnhealthy,
    /// The worker drains, and the id is not resident.
    Draining,
    /// As many instances as there may be are there.
    Capacity,
    /// Too many activations wait.
    ActivationQueue,
    /// The instance is past the deadline by which it had to let go.
    PastDeadline,
    /// The instance is closing.
    Closing,
    /// A higher epoch is known.
    StaleEpoch,
    /// This epoch was handed back.
    ReleasedEpoch,
    /// The instance is there and has no time.
    Busy,
}

impl RefusalReason {
    /// The value of `pinned-refusal`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::LeaseExpired => "lease-expired",
            Self::LeaseUnhealthy => "lease-unhealthy",
            Self::Draining => "draining",
            Self::Capacity => "capacity",
            Self::ActivationQueue => "activation-queue",
            Self::PastDeadline => "past-deadline",
            Self::Closing => "closing",
            Self::StaleEpoch => "stale-epoch",
            Self::ReleasedEpoch => "released-epoch",
            Self::Busy => "busy",
        }
    }

    fn detail(self) -> &'static str {
        match self {
            Self::LeaseExpired => "lease expired; not serving",
            Self::LeaseUnhealthy => "lease unhealthy; refusing new activations",
            Self::Draining => "host draining; retry",
            Self::Capacity => "instance capacity reached; retry",
            Self::ActivationQueue => "activation queue full; retry",
            Self::PastDeadline => "instance past its wind-down deadline; retry",
            Self::Closing => "instance closing; retry",
            Self::StaleEpoch => "stale placement epoch; retry",
            Self::ReleasedEpoch => "released placement epoch; retry",
            Self::Busy => "turn timed out; retry",
        }
    }

    /// The answer, with or without the header that says why.
    pub(super) fn response(self, names_it: bool) -> Response<WorkerBody> {
        let mut response = detail(StatusCode::SERVICE_UNAVAILABLE, self.detail());
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        if names_it {
            headers.insert(REFUSAL, HeaderValue::from_static(self.reason()));
        }
        response
    }
}

/// An answer that says what is wrong.
pub(super) fn detail(status: StatusCode, detail: &str) -> Response<WorkerBody> {
    json_response(status, &json!({ "detail": detail }))
}

pub(super) fn json_response(status: StatusCode, body: &serde_json::Value) -> Response<WorkerBody> {
    let mut response = Response::new(full(body.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
