//! A request as handlers and extractors see it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use http::request::Parts;
use hyper::body::Incoming;

use super::auth::AuthOutput;
use super::context::Context;
use super::seam::Seam;
use crate::Attestation;

/// The state of extractors in handlers: an extractor of your own that needs the instance's context or the
/// authorizer's result implements `FromRequestParts<RequestState>`.
///
/// ```
/// use axum::extract::FromRequestParts;
/// use axum::http::{StatusCode, request::Parts};
/// use pinned::RequestState;
///
/// struct Owner;
///
/// impl FromRequestParts<RequestState> for Owner {
///     type Rejection = StatusCode;
///
///     async fn from_request_parts(_: &mut Parts, state: &RequestState) -> Result<Self, StatusCode> {
///         match state.auth::<String>() {
///             Some(user) if *user == state.context().id() => Ok(Self),
///             _ => Err(StatusCode::FORBIDDEN),
///         }
///     }
/// }
/// ```
pub struct RequestState {
    context: Context,
    attestation: Attestation,
    auth: Option<AuthOutput>,
}

impl RequestState {
    pub(crate) fn new(seam: Seam, attestation: Attestation, auth: Option<AuthOutput>) -> Self {
        Self {
            context: Context::new(seam),
            attestation,
            auth,
        }
    }

    /// The context of the instance that the request is for.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Who calls, as far as a control plane or another instance vouches for it.
    pub fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    /// What the route's authorizer returned, if that is a `T`; nothing on a public route (H2.5).
    pub fn auth<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.auth.as_ref()?.downcast()
    }

    pub(crate) fn seam(&self) -> &Seam {
        self.context.seam()
    }
}

impl std::fmt::Debug for RequestState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestState")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl FromRequestParts<RequestState> for Attestation {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        _parts: &mut Parts,
        state: &RequestState,
    ) -> Result<Self, Self::Rejection> {
        Ok(state.attestation.clone())
    }
}

/// A [`RequestState`] that is made for the first extractor which asks: many handlers have none.
pub(crate) enum LazyState {
    Unmade {
        attestation: Attestation,
        auth: Option<AuthOutput>,
    },
    Made(RequestState),
}

impl LazyState {
    /// With what the route's authorizer returned, where it has one.
    pub(crate) fn new(attestation: Attestation, auth: Option<AuthOutput>) -> Self {
        Self::Unmade { attestation, auth }
    }

    /// The state of a request to `seam`'s instance.
    pub(crate) fn get(&mut self, seam: &Seam) -> &RequestState {
        if let Self::Unmade { attestation, auth } = self {
            let attestation = std::mem::replace(attestation, Attestation::Anonymous);
            let seam = Arc::clone(seam);
            *self = Self::Made(RequestState::new(seam, attestation, auth.take()));
        }
        match self {
            Self::Made(state) => state,
            Self::Unmade { .. } => unreachable!("made above"),
        }
    }
}

/// A request's body; boxed only for a handler that wants it.
pub(crate) enum RequestBody {
    Incoming(Incoming),
    Body(Body),
}

impl RequestBody {
    pub(crate) fn into_body(self) -> Body {
        match self {
            Self::Incoming(incoming) => Body::new(incoming),
            Self::Body(body) => body,
        }
    }
}
