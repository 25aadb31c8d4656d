//! A call that is being put together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Uri};
use serde::Serialize;

use super::error::ClusterError;
use super::response::{ClusterResponse, Deadline};
use crate::api::seam::Seam;

/// What every kind of call has.
pub(super) struct Draft {
    pub(super) seam: Seam,
    uri: Result<Uri, String>,
    headers: HeaderMap,
    /// The last mistake that was made with it.
    mistake: Option<String>,
    pub(super) timeout: Option<Duration>,
}

impl Draft {
    pub(super) fn new(seam: Seam, path: &str) -> Self {
        let uri = if path.starts_with('/') {
            path.parse::<Uri>()
                .map_err(|error| format!("{path:?}: {error}"))
        } else {
            Err(format!("{path:?}: a path starts with `/`"))
        };
        Self {
            seam,
            uri,
            headers: HeaderMap::new(),
            mistake: None,
            timeout: None,
        }
    }

    pub(super) fn header<N, V>(&mut self, name: N, value: V)
    where
        N: TryInto<HeaderName, Error: fmt::Display>,
        V: TryInto<HeaderValue, Error: fmt::Display>,
    {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => {
                self.headers.append(name, value);
            }
            (Err(error), _) => self.mistake = Some(error.to_string()),
            (_, Err(error)) => self.mistake = Some(error.to_string()),
        }
    }

    /// Those of `headers` take the places of earlier ones of the same names.
    pub(super) fn headers(&mut self, headers: HeaderMap) {
        for name in headers.keys() {
            self.headers.remove(name);
        }
        let mut last = None;
        for (name, value) in headers {
            // A name comes with its first value only.
            last = name.or(last);
            if let Some(name) = &last {
                self.headers.append(name.clone(), value);
            }
        }
    }

    pub(super) fn query(&mut self, query: &impl Serialize) {
        if let Ok(uri) = &self.uri {
            self.uri = with_query(uri, query);
        }
    }

    /// The target and the headers, of which those are left out that are about one connection: a call has its own.
    pub(super) fn finish(&mut self) -> Result<(Uri, HeaderMap), ClusterError> {
        let uri = std::mem::replace(&mut self.uri, Err(String::new()))
            .map_err(ClusterError::InvalidRequest)?;
        if let Some(mistake) = self.mistake.take() {
            return Err(ClusterError::InvalidRequest(mistake));
        }
        let mut headers = std::mem::take(&mut self.headers);
        for name in [
            header::CONNECTION.as_str(),
            header::CONTENT_LENGTH.as_str(),
            "keep-alive",
            "proxy-connection",
            header::TE.as_str(),
            header::TRANSFER_ENCODING.as_str(),
            header::UPGRADE.as_str(),
        ] {
            headers.remove(name);
        }
        Ok((uri, headers))
    }
}

/// A call that is being put together. Mistakes are reported by [`ClusterRequest::send`].
#[must_use = "a request does nothing until it is sent"]
pub struct ClusterRequest {
    draft: Draft,
    method: Method,
    body: Body,
}

impl ClusterRequest {
    pub(super) fn new(draft: Draft, method: Method) -> Self {
        Self {
            draft,
            method,
            body: Body::empty(),
        }
    }

    /// Adds a header. `Host`, every `pinboard-*` header (W14.4), and what is about one connection, such as `Connection` and
    /// `Content-Length`, are dropped on the way.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName, Error: fmt::Display>,
        V: TryInto<HeaderValue, Error: fmt::Display>,
    {
        self.draft.header(name, value);
        self
    }

    /// Sets `headers`, in the place of earlier ones of the same names. What is dropped on the way is dropped of these too,
    /// so that those of a request may be passed on.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.draft.headers(headers);
        self
    }

    /// Adds `query` to the path, form-encoded.
    pub fn query(mut self, query: &impl Serialize) -> Self {
        self.draft.query(query);
        self
    }

    /// Sends `value` as JSON.
    pub fn json(mut self, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => {
                self.draft.headers.insert(
                    header::CONTENT_TYPE,
                    HeaderValue::from_static("application/json"),
                );
                self.body(bytes)
            }
            Err(error) => {
                self.draft.mistake = Some(error.to_string());
                self
            }
        }
    }

    /// Sends `body`: bytes, text, or a stream through [`Body::from_stream`].
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// Gives up after `timeout`; there is none by default (W14.6). It bounds the reading of the answer too, unless that is
    /// taken as a stream ([`ClusterResponse::into_body`]).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.timeout = Some(timeout);
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
        let Self {
            mut draft,
            method,
            body,
        } = self;
        let (uri, headers) = draft.finish()?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let deadline = draft
            .timeout
            .map(|timeout| Deadline::new(draft.seam.domain().clone(), timeout));
        let call = Arc::clone(&draft.seam).call(request);
        let response = match &deadline {
            None => call.await?,
            Some(deadline) => deadline.bound(call).await??,
        };
        Ok(ClusterResponse::new(response, deadline))
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
            .field("uri", &self.draft.uri)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may be secrets.
        f.debug_struct("Draft")
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}
