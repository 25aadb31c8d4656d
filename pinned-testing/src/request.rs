//! One request on its way.

use std::fmt;

use axum::body::Body;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Uri};
use pinned::ws::InProcessUpgrade;
use serde::Serialize;
use tower::ServiceExt as _;

use crate::client::TestClient;
use crate::response::TestResponse;

/// A request that is put together, from a method of [`TestClient`].
///
/// ```
/// # use pinned_testing::TestClient;
/// # async fn demo(client: TestClient) {
/// let answer = client
///     .post("/rooms/blue/messages")
///     .query([("draft", "true")])
///     .header("x-trace", "1")
///     .json(&serde_json::json!({ "text": "hello" }))
///     .send()
///     .await;
/// # }
/// ```
#[must_use = "a request does nothing until it is sent"]
pub struct TestRequest {
    client: TestClient,
    method: Method,
    target: String,
    headers: HeaderMap,
    body: Body,
}

impl TestRequest {
    pub(crate) fn new(client: TestClient, method: Method, target: String) -> Self {
        Self {
            headers: client.headers().clone(),
            client,
            method,
            target,
            body: Body::empty(),
        }
    }

    /// Adds a header; one that is there already stays.
    ///
    /// # Panics
    ///
    /// When the name or the value is not valid in a header.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName>,
        N::Error: fmt::Debug,
        V: TryInto<HeaderValue>,
        V::Error: fmt::Debug,
    {
        let name = name.try_into().expect("the name of a header");
        let value = value.try_into().expect("the value of a header");
        self.headers.append(name, value);
        self
    }

    /// Adds `pairs` to the query: a list of pairs, a map, or a struct.
    ///
    /// # Panics
    ///
    /// When `pairs` is not flat.
    pub fn query(mut self, pairs: impl Serialize) -> Self {
        let query = serde_urlencoded::to_string(pairs).expect("a flat list of names and values");
        self.target
            .push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(&query);
        self
    }

    /// Sends `value` as JSON.
    ///
    /// # Panics
    ///
    /// When `value` does not serialize.
    pub fn json(self, value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).expect("a value that serializes");
        self.header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body)
    }

    /// Sends `body`: text, bytes, or a stream through [`Body::from_stream`].
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends the request and waits for the head of the answer.
    ///
    /// # Panics
    ///
    /// When the path is no request target.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future is a client that leaves before its answer.
    pub async fn send(self) -> TestResponse {
        let (client, request) = self.into_parts();
        answer(&client, request).await
    }

    /// Sends the request over a connection that the server may take over.
    pub(crate) async fn send_over(self, connection: InProcessUpgrade) -> TestResponse {
        let (client, mut request) = self.into_parts();
        request.extensions_mut().insert(connection);
        answer(&client, request).await
    }

    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    fn into_parts(self) -> (TestClient, Request<Body>) {
        let uri: Uri = match self.target.parse() {
            Ok(uri) if self.target.starts_with('/') => uri,
            _ => panic!("{:?} is not a path with a slash in front", self.target),
        };
        let attestation = self.client.attestation(uri.path());
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers;
        let headers = request.headers_mut();
        headers
            .entry(HOST)
            .or_insert(HeaderValue::from_static("pinned.test"));
        if let Some(attestation) = attestation {
            headers
                .entry(pinned::wire::headers::ATTESTATION)
                .or_insert(attestation);
        }
        (self.client, request)
    }
}

async fn answer(client: &TestClient, request: Request<Body>) -> TestResponse {
    let answer = match client.router().clone().oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    TestResponse::new(answer, client.worker().domain().clone())
}

impl fmt::Debug for TestRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may hold credentials.
        f.debug_struct("TestRequest")
            .field("method", &self.method)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}
