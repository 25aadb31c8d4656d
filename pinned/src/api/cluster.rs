//! Calls from one instance to another (W14).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::BodyExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::seam::Seam;
use crate::error::BoxError;

/// How deep a chain of calls may go (W14.3).
pub const MAX_CALL_DEPTH: u32 = 50;

/// Why a call to another instance did not come to an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The path, a header, the query or the body is not one. Nothing was sent.
    #[error("invalid cluster request: {0}")]
    InvalidRequest(String),
    /// The chain of calls is [`MAX_CALL_DEPTH`] deep. Nothing was sent.
    #[error("cluster calls may be {MAX_CALL_DEPTH} deep; this one would be deeper")]
    DepthExceeded,
    /// No such namespace here, and no control plane to ask. Nothing was sent.
    #[error(
        "unknown cluster target {0}: no such namespace on this worker, and no pinboard configured"
    )]
    UnknownTarget(String),
    /// This worker has no session with the control plane at the moment. Nothing was sent.
    #[error(
        "a call to another worker needs a live session with the control plane, and there is none at the moment"
    )]
    NoSession,
    /// The control plane could not be reached, or broke off before it answered. The call may have run.
    #[error("the control plane did not answer")]
    Unreachable(#[source] BoxError),
    /// No answer within the request's timeout. The call may have run.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The answer's body broke off, or is not what was asked for.
    #[error("the answer could not be read")]
    Body(#[source] BoxError),
}

/// Calls other instances by `/<namespace>/<id>/...`, with this instance as the attested caller.
///
/// ```
/// # async fn demo(ctx: pinned::Context) -> Result<(), pinned::ClusterError> {
/// let answer = ctx.cluster().post("/counters/alice/increment").send().await?;
/// if answer.status().is_success() {
///     let count: u64 = answer.json().await?;
/// #   let _ = count;
/// } else {
///     // It was refused, or failed: `answer.text()` says why.
/// }
/// # Ok(())
/// # }
/// ```
///
/// [`ClusterRequest::send`] is `Ok` for an answer of whatever status. Look at [`ClusterResponse::status`] before you rely
/// on what the call was for.
#[derive(Clone)]
pub struct Cluster {
    seam: Seam,
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(&self, path: impl AsRef<str>) -> ClusterRequest {
            self.request(Method::$method, path)
        })*
    };
}

impl Cluster {
    pub(crate) fn new(seam: Seam) -> Self {
        Self { seam }
    }

    verbs! {
        /// A `GET` to `path`.
        get = GET;
        /// A `POST` to `path`.
        post = POST;
        /// A `PUT` to `path`.
        put = PUT;
        /// A `PATCH` to `path`.
        patch = PATCH;
        /// A `DELETE` to `path`.
        delete = DELETE;
    }

    /// A request with `method` to `path`, which starts with `/` and may carry a query.
    pub fn request(&self, method: Method, path: impl AsRef<str>) -> ClusterRequest {
        let path = path.as_ref();
        let uri = if path.starts_with('/') {
            path.parse::<Uri>()
                .map_err(|error| format!("{path:?}: {error}"))
        } else {
            Err(format!("{path:?}: a path starts with `/`"))
        };
        ClusterRequest {
            seam: Arc::clone(&self.seam),
            method,
            uri,
            headers: HeaderMap::new(),
            body: Ok(Body::empty()),
            timeout: None,
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("namespace", &self.seam.namespace())
            .field("id", &self.seam.id())
            .finish()
    }
}

/// A call that is being put together. Mistakes are reported by [`ClusterRequest::send`].
#[must_use = "a request does nothing until it is sent"]
pub struct ClusterRequest {
    seam: Seam,
    method: Method,
    uri: Result<Uri, String>,
    headers: HeaderMap,
    body: Result<Body, String>,
    timeout: Option<Duration>,
}

impl ClusterRequest {
    /// Adds a header. `Host` and every `pinboard-*` header are dropped on the way (W14.4).
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName, Error: fmt::Display>,
        V: TryInto<HeaderValue, Error: fmt::Display>,
    {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => {
                self.headers.append(name, value);
            }
            (Err(error), _) => self.body = Err(error.to_string()),
            (_, Err(error)) => self.body = Err(error.to_string()),
        }
        self
    }

    /// Adds `query` to the path, form-encoded.
    pub fn query(mut self, query: &impl Serialize) -> Self {
        if let Ok(uri) = &self.uri {
            self.uri = with_query(uri, query);
        }
        self
    }

    /// Sends `value` as JSON.
    pub fn json(mut self, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => {
                self.headers.insert(
                    header::CONTENT_TYPE,
                    HeaderValue::from_static("application/json"),
                );
                self.body(bytes)
            }
            Err(error) => {
                self.body = Err(error.to_string());
                self
            }
        }
    }

    /// Sends `body`: bytes, text, or a stream through [`Body::from_stream`].
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        if self.body.is_ok() {
            self.body = Ok(body.into());
        }
        self
    }

    /// Gives up after `timeout`; there is none by default (W14.6).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends the call and waits for the head of the answer. Any status is an answer, a 403 or a 503 included: check
    /// [`ClusterResponse::status`].
    ///
    /// # Errors
    ///
    /// [`ClusterError`], whose variants say whether anything was sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the answer; a handler that has begun runs to its end.
    pub async fn send(self) -> Result<ClusterResponse, ClusterError> {
        let uri = self.uri.map_err(ClusterError::InvalidRequest)?;
        let body = self.body.map_err(ClusterError::InvalidRequest)?;
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers;
        let domain = self.seam.domain().clone();
        let call = self.seam.call(request);
        let response = match self.timeout {
            None => call.await?,
            Some(timeout) => domain
                .timeout(timeout, call)
                .await
                .map_err(|_elapsed| ClusterError::TimedOut(timeout))??,
        };
        Ok(ClusterResponse(response))
    }
}

fn with_query(uri: &Uri, query: &impl Serialize) -> Result<Uri, String> {
    let encoded = serde_urlencoded::to_string(query).map_err(|error| error.to_string())?;
    if encoded.is_empty() {
        return Ok(uri.clone());
    }
    let joined = match uri.query() {
        Some(before) if !before.is_empty() => format!("{}?{before}&{encoded}", uri.path()),
        _ => format!("{}?{encoded}", uri.path()),
    };
    joined
        .parse()
        .map_err(|error: http::uri::InvalidUri| error.to_string())
}

impl fmt::Debug for ClusterRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterRequest")
            .field("method", &self.method)
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

/// An instance's answer to a call.
#[derive(Debug)]
pub struct ClusterResponse(Response);

impl ClusterResponse {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The whole body.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Body`] when it breaks off.
    pub async fn bytes(self) -> Result<Bytes, ClusterError> {
        let body = self.0.into_body().collect().await;
        body.map(|body| body.to_bytes())
            .map_err(|error| ClusterError::Body(error.into()))
    }

    /// The whole body as text.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Body`] when it breaks off or is not UTF-8.
    pub async fn text(self) -> Result<String, ClusterError> {
        let bytes = self.bytes().await?;
        String::from_utf8(bytes.into()).map_err(|error| ClusterError::Body(error.into()))
    }

    /// The whole body as JSON.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Body`] when it breaks off or is not a `T`.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, ClusterError> {
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| ClusterError::Body(error.into()))
    }

    /// The body as it comes in, for streams.
    pub fn into_body(self) -> Body {
        self.0.into_body()
    }
}
