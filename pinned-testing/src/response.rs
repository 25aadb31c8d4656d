//! Answers, and bodies that are read as they come.

use std::fmt;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use bytes::BytesMut;
use http::header::AsHeaderName;
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use pinned::domain::Domain;
use serde::de::DeserializeOwned;

/// The answer to a [`TestRequest`](crate::TestRequest). Its body may still be under way.
///
/// ```
/// # use pinned_testing::TestClient;
/// # async fn demo(client: TestClient) {
/// let answer = client.get("/rooms/blue").send().await;
/// assert_eq!(answer.status(), 200);
/// assert_eq!(answer.header("content-type"), Some("application/json"));
/// let names: Vec<String> = answer.json().await;
/// # }
/// ```
pub struct TestResponse {
    parts: Box<Parts>,
    body: BodyReader,
}

/// A body, chunk by chunk. Dropping it is a client that stops to read.
///
/// ```
/// # use pinned_testing::TestClient;
/// # use std::time::Duration;
/// # async fn demo(client: TestClient) {
/// let mut events = client.get("/rooms/blue/events").send().await.body();
/// let first = events.next_chunk(Duration::from_secs(5)).await;
/// assert!(first.is_some_and(|chunk| chunk.starts_with(b"data:")));
/// # }
/// ```
pub struct BodyReader {
    body: Body,
    domain: Domain,
}

/// Why a body has no next chunk to show.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// Nothing came in the time that was given. The body can be read on.
    #[error("nothing came within {0:?}")]
    TimedOut(Duration),
    /// The body broke off.
    #[error("the body broke off: {0}")]
    Broken(#[source] axum::Error),
}

// ===== impl TestResponse =====

impl TestResponse {
    pub(crate) fn new(response: Response, domain: Domain) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            parts: Box::new(parts),
            body: BodyReader { body, domain },
        }
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.parts.status
    }

    /// All headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// The first header of that name, if it is text.
    #[must_use]
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// The whole body.
    ///
    /// # Panics
    ///
    /// When the body breaks off.
    pub async fn bytes(self) -> Bytes {
        let body = self.body.body.collect().await;
        body.expect("a body that does not break off").to_bytes()
    }

    /// The whole body, as text.
    ///
    /// # Panics
    ///
    /// When the body breaks off or is no UTF-8.
    pub async fn text(self) -> String {
        String::from_utf8(self.bytes().await.into()).expect("a body in UTF-8")
    }

    /// The whole body, as JSON.
    ///
    /// # Panics
    ///
    /// When the body breaks off or does not read as a `T`; the panic shows the body.
    pub async fn json<T: DeserializeOwned>(self) -> T {
        let status = self.status();
        let bytes = self.bytes().await;
        serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            let body = String::from_utf8_lossy(&bytes);
            panic!(
                "the body of a {status} is no {}: {error}: {body}",
                std::any::type_name::<T>()
            )
        })
    }

    /// The body, to be read as it comes.
    #[must_use = "dropping it stops the body"]
    pub fn body(self) -> BodyReader {
        self.body
    }
}

impl fmt::Debug for TestResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestResponse")
            .field("status", &self.parts.status)
            .field("headers", &self.parts.headers)
            .finish_non_exhaustive()
    }
}

// ===== impl BodyReader =====

impl BodyReader {
    /// The next chunk, or `None` at the end.
    ///
    /// # Panics
    ///
    /// When nothing comes within `timeout`, or the body breaks off: see [`BodyReader::try_next_chunk`].
    pub async fn next_chunk(&mut self, timeout: Duration) -> Option<Bytes> {
        self.try_next_chunk(timeout)
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// The next chunk, or `None` at the end.
    ///
    /// # Errors
    ///
    /// [`BodyError`]; after a time-out the body can be read on.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no chunk is lost.
    pub async fn try_next_chunk(&mut self, timeout: Duration) -> Result<Option<Bytes>, BodyError> {
        let body = &mut self.body;
        let next = async {
            loop {
                match body.frame().await {
                    None => return Ok(None),
                    Some(Err(error)) => return Err(BodyError::Broken(error)),
                    Some(Ok(frame)) => {
                        // Trailers are no chunk.
                        if let Ok(chunk) = frame.into_data() {
                            return Ok(Some(chunk));
                        }
                    }
                }
            }
        };
        match self.domain.timeout(timeout, next).await {
            Ok(next) => next,
            Err(_elapsed) => Err(BodyError::TimedOut(timeout)),
        }
    }

    /// All that is left, up to the end of the body, within `timeout` in all.
    ///
    /// # Panics
    ///
    /// When the end does not come within `timeout`, or the body breaks off: see [`BodyReader::try_drain`].
    pub async fn drain(self, timeout: Duration) -> Bytes {
        self.try_drain(timeout)
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// All that is left, up to the end of the body, within `timeout` in all.
    ///
    /// # Errors
    ///
    /// [`BodyError`]; what had been read by then is lost.
    pub async fn try_drain(mut self, timeout: Duration) -> Result<Bytes, BodyError> {
        let domain = self.domain.clone();
        let end = domain.monotonic() + timeout;
        let mut all = BytesMut::new();
        loop {
            let left = end.saturating_duration_since(domain.monotonic());
            match self.try_next_chunk(left).await {
                Ok(Some(chunk)) => all.extend_from_slice(&chunk),
                Ok(None) => return Ok(all.freeze()),
                Err(BodyError::TimedOut(_)) => return Err(BodyError::TimedOut(timeout)),
                Err(broken) => return Err(broken),
            }
        }
    }
}

impl fmt::Debug for BodyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyReader").finish_non_exhaustive()
    }
}
