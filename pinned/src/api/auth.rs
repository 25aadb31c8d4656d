//! Authorizers: what they see, and what they may answer.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, StatusCode, Uri};
use serde::Serialize;

use super::refusal::internal_error;
use super::request::RequestState;
use super::socket::{Session, SocketFailure};
use crate::Attestation;
use crate::error::BoxError;
use crate::ws::SocketError;

/// What an authorizer sees of a request, before the instance exists (H2.6).
///
/// ```
/// use pinned::{AuthRejected, Connection, Context, Denied, pinned_api};
///
/// #[derive(Default)]
/// struct Document;
///
/// #[pinned_api("/docs")]
/// impl Document {
///     #[authorize]
///     async fn authorize(_ctx: &Context, conn: &Connection) -> Result<String, Denied> {
///         let token = conn.headers().get("authorization").and_then(|value| value.to_str().ok());
///         match token {
///             Some(token) => Ok(token.to_owned()),
///             None => Err(AuthRejected::new("sign in first").into()),
///         }
///     }
/// }
/// ```
pub struct Connection {
    pub(crate) parts: Parts,
    pub(crate) attestation: Attestation,
    pub(crate) session: Option<Session>,
}

impl Connection {
    /// The request's method.
    pub fn method(&self) -> &Method {
        &self.parts.method
    }

    /// The request's target, as it came in.
    pub fn uri(&self) -> &Uri {
        &self.parts.uri
    }

    /// The request's headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// What layers in front of the worker left with the request.
    pub fn extensions(&self) -> &Extensions {
        &self.parts.extensions
    }

    /// Who calls, as far as a control plane or another instance vouches for it.
    pub fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    /// Whether this request opens a WebSocket.
    pub fn is_websocket(&self) -> bool {
        self.session.is_some()
    }

    /// Accepts the WebSocket already here, so that a denial can say why over it (H2.9, H2.13).
    ///
    /// The handler then receives a socket that is open. Does nothing on an HTTP request.
    ///
    /// # Errors
    ///
    /// The client has left.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the answer may have left although the future was dropped.
    pub async fn accept(&self) -> Result<(), SocketError> {
        match &self.session {
            Some(session) => session.control.upgrade().accept().await.map(drop),
            None => Ok(()),
        }
    }

    /// Sets what to tell the client of an accepted WebSocket before the host closes it for a fault or a refusal: the
    /// text that the hook returns is sent as one frame (H2.16). The last hook set counts.
    ///
    /// A hook that panics is logged and ignored; the close happens all the same.
    pub fn on_socket_failure(
        &self,
        hook: impl Fn(&SocketFailure) -> Option<String> + Send + Sync + 'static,
    ) {
        if let Some(session) = &self.session {
            session.hooks.set(Box::new(hook));
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may hold credentials.
        f.debug_struct("Connection")
            .field("method", &self.parts.method)
            .field("path", &self.parts.uri.path())
            .field("websocket", &self.is_websocket())
            .finish_non_exhaustive()
    }
}

/// A deliberate denial: the caller is told, and nothing is logged as an error (H2.7).
#[derive(Clone, Debug, PartialEq)]
pub struct AuthRejected {
    message: String,
    forbidden: bool,
    payload: Option<Result<String, String>>,
    code: Option<String>,
}

impl AuthRejected {
    /// 401 with `{"message": <message>}`.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            forbidden: false,
            payload: None,
            code: None,
        }
    }

    /// 403 instead of 401.
    #[must_use]
    pub fn forbidden(mut self) -> Self {
        self.forbidden = true;
        self
    }

    /// Answers with exactly this JSON. On an accepted WebSocket it is sent as one text frame before the close (H2.9).
    ///
    /// A payload that does not serialize makes the denial a fault: 500, or close code 1011.
    #[must_use]
    pub fn payload(mut self, payload: impl Serialize) -> Self {
        self.payload = Some(serde_json::to_string(&payload).map_err(|error| error.to_string()));
        self
    }

    /// A code for the program itself; it is not put on the wire.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// What the caller is told.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// 401 or 403.
    pub fn status(&self) -> StatusCode {
        if self.forbidden {
            StatusCode::FORBIDDEN
        } else {
            StatusCode::UNAUTHORIZED
        }
    }

    /// The program's own code.
    pub fn code_str(&self) -> Option<&str> {
        self.code.as_deref()
    }

    pub(crate) fn json(&self) -> Option<Result<String, String>> {
        self.payload.clone()
    }
}

/// Why an authorizer does not let a request through.
///
/// `?` turns any error into a fault: it is logged, and the caller sees 503 `authorization failed` without its text
/// (H2.15). The other ways are deliberate, and are answered as they say.
#[non_exhaustive]
pub enum Denied {
    /// 401 or 403 (H2.8, H2.9).
    Rejected(AuthRejected),
    /// This whole response, on HTTP (H2.14). On a WebSocket it is a fault.
    Response(Box<Response>),
    /// An HTTP error: its status and `{"detail": ..}`; on a WebSocket close code 1008 with the detail (H2.12).
    Http(StatusCode, String),
    /// On a WebSocket, a close with this code and reason (H2.13). On HTTP it is a fault.
    Close(u16, String),
    /// The authorizer itself failed (H2.15).
    Fault(BoxError),
}

impl Denied {
    /// A whole response of your own, such as a redirect to a sign-in page (H2.14).
    pub fn response(response: impl IntoResponse) -> Self {
        Self::Response(Box::new(response.into_response()))
    }

    /// An HTTP error such as `429`, `"slow down"`.
    pub fn http(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::Http(status, detail.into())
    }

    /// A WebSocket close, for example `4401`.
    pub fn close(code: u16, reason: impl Into<String>) -> Self {
        Self::Close(code, reason.into())
    }

    /// A fault of the authorizer, from anything that converts into a boxed error.
    pub fn fault(error: impl Into<BoxError>) -> Self {
        Self::Fault(error.into())
    }
}

impl From<AuthRejected> for Denied {
    fn from(rejected: AuthRejected) -> Self {
        Self::Rejected(rejected)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Denied {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}

impl fmt::Debug for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejected) => f.debug_tuple("Rejected").field(rejected).finish(),
            Self::Response(response) => {
                f.debug_tuple("Response").field(&response.status()).finish()
            }
            Self::Http(status, detail) => {
                f.debug_tuple("Http").field(status).field(detail).finish()
            }
            Self::Close(code, reason) => f.debug_tuple("Close").field(code).field(reason).finish(),
            Self::Fault(error) => f.debug_tuple("Fault").field(error).finish(),
        }
    }
}

/// What an authorizer found out, without its type.
#[doc(hidden)]
#[derive(Clone)]
pub struct AuthOutput(Arc<dyn Any + Send + Sync>);

/// What an authorizer may return: `Result<Caller, Denied>`, or any error that converts into [`Denied`].
#[diagnostic::on_unimplemented(
    message = "an authorizer returns `Result<Caller, Denied>`, not `{Self}`",
    label = "not a result with an error that converts into `Denied`"
)]
pub trait AuthReturn {
    /// What `Auth<T>` hands to the handler.
    type Caller;

    #[doc(hidden)]
    fn into_auth(self) -> Result<AuthOutput, Denied>;
}

impl<C: Send + Sync + 'static, E: Into<Denied>> AuthReturn for Result<C, E> {
    type Caller = C;

    fn into_auth(self) -> Result<AuthOutput, Denied> {
        match self {
            Ok(caller) => Ok(AuthOutput(Arc::new(caller))),
            Err(denied) => Err(denied.into()),
        }
    }
}

/// The authorizer's result, as a handler argument (H2.5).
///
/// It dereferences to `T`; the authorizer ran exactly once for this request.
///
/// ```
/// # use pinned::{Auth, Connection, Context, Denied, pinned_api, route};
/// # #[derive(Default)]
/// # struct Document;
/// struct User { name: String }
///
/// #[pinned_api("/docs")]
/// impl Document {
///     #[authorize]
///     async fn authorize(_ctx: &Context, _conn: &Connection) -> Result<User, Denied> {
///         Ok(User { name: "ada".to_owned() })
///     }
///
///     #[route::get("/whoami")]
///     async fn whoami(&self, user: Auth<User>) -> String {
///         user.name.clone()
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Auth<T>(pub Arc<T>);

impl<T> Clone for Auth<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Auth<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync + 'static> FromRequestParts<RequestState> for Auth<T> {
    type Rejection = Response;

    async fn from_request_parts(
        _parts: &mut Parts,
        state: &RequestState,
    ) -> Result<Self, Self::Rejection> {
        state.auth::<T>().map(Self).ok_or_else(|| {
            tracing::error!(
                target: "pinned::host",
                wanted = std::any::type_name::<T>(),
                "the route's authorizer returns no such type"
            );
            internal_error()
        })
    }
}

impl AuthOutput {
    pub(crate) fn downcast<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.0).downcast().ok()
    }
}
