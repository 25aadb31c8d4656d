//! Why a call to the registry was refused, and what that looks like over HTTP.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use pinned_domain::ErrorChain;
use pinned_wire::registry::Refusal;

use crate::store::StoreError;
use crate::workers::NotRefreshed;

/// How soon to try again when there is nothing better to say.
const SOON: Duration = Duration::from_secs(1);

/// Why a call to the registry was refused. What it displays is what the caller is told, and never has a secret in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// 401: no provider vouches for the caller.
    #[error("unauthorized")]
    Unauthorized,
    /// 403: the caller's scopes or claims do not cover the call.
    #[error("forbidden")]
    Forbidden,
    /// 403: the advertised URL has not proved to be the worker's own.
    #[error("{0}")]
    NotProved(String),
    /// 400: what is wrong with the body or the query, and what was expected.
    #[error("{0}")]
    Malformed(String),
    /// 404: there is no such route.
    #[error("not found")]
    NotFound,
    /// 405: the route takes another method.
    #[error("method not allowed, use {0}")]
    MethodNotAllowed(&'static str),
    /// 408: the body did not come in time.
    #[error("the body did not come within {0:?}")]
    Slow(Duration),
    /// 413: the body is too long.
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    /// 409: the session does not live; the worker must register again.
    #[error("{0}")]
    Reregister(&'static str),
    /// 409: another worker has displaced the session for good.
    #[error("superseded by a registration with a higher epoch")]
    Superseded,
    /// 503: something that must answer does not, but may later.
    #[error("{0}")]
    Unavailable(String),
    /// 503: the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// 500: a fault of ours.
    #[error("internal error")]
    Internal,
}

impl RegistryError {
    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::NotProved(_) => StatusCode::FORBIDDEN,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Reregister(_) | Self::Superseded => StatusCode::CONFLICT,
            Self::Unavailable(_) | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// How soon the caller may try again, where that is any use.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        matches!(self, Self::Unavailable(_) | Self::Store(_)).then_some(SOON)
    }

    /// The store does not answer, and has not even said so.
    pub(crate) fn store_away() -> Self {
        Self::Unavailable("the registry store does not answer".to_owned())
    }

    /// A body that is malformed at `place`.
    pub(crate) fn malformed(place: impl std::fmt::Display, reason: impl std::fmt::Display) -> Self {
        Self::Malformed(format!("{place}: {reason}"))
    }

    fn body(&self) -> Refusal {
        let text = self.to_string();
        match self {
            Self::Reregister(_) => Refusal::reregister(text),
            Self::Superseded => Refusal::superseded(text),
            _ => Refusal::new(text),
        }
    }
}

impl From<NotRefreshed> for RegistryError {
    fn from(_: NotRefreshed) -> Self {
        Self::store_away()
    }
}

impl IntoResponse for RegistryError {
    fn into_response(self) -> Response {
        if let Self::Store(error) = &self {
            // The caller is told that the store is the trouble; why is for the operator.
            tracing::warn!(
                error = %ErrorChain(error),
                "a registry call failed"
            );
        }
        let mut response = (self.status(), Json(self.body())).into_response();
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        match self {
            Self::Unauthorized => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::MethodNotAllowed(allowed) => {
                headers.insert(http::header::ALLOW, HeaderValue::from_static(allowed));
            }
            _ => {}
        }
        response
    }
}
