//! The control plane over HTTP (W2.3, W14.6).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pinned_wire::registry::Secret;

use super::settings::{check_url, shown};
use super::transport::{ControlAnswer, ControlPlane, DataPlane};
use crate::error::{BoxError, Error, Result};

/// The longest answer that is read, in bytes: some tens of thousands of duplicates.
const LONGEST_ANSWER: usize = 16 << 20;

/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(90);

/// How long a connection is silent before its peer is asked whether it is still there, and how long the peer has to answer
/// before it is asked again.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often it is asked.
const KEEP_ALIVE_RETRIES: u32 = 3;

/// How long what was sent may stay unacknowledged: keepalive says nothing about a connection that has bytes on their way, and
/// the system goes on for a quarter of an hour.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// What is no part of a request line, though a [`Uri`] may have it (RFC 3986, 2): some servers refuse it. Those that are not
/// ASCII are none in any case.
const NOT_IN_A_TARGET: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The one HTTP client of a worker, with one pool of connections: no redirects, no proxies, the system's root certificates.
#[derive(Clone)]
pub(crate) struct HttpClient(Client<HttpsConnector<HttpConnector>, Body>);

impl HttpClient {
    pub(crate) fn new() -> Result<Self> {
        let mut roots = rustls::RootCertStore::empty();
        // A root that cannot be read is one root less; without any, only plain HTTP works, and says so when it does not.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::config(format!("TLS cannot be set up: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp());
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self(client))
    }
}

/// Makes connections that send at once, and on which a peer that vanished is noticed: a call has no deadline of its own.
fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE_RETRIES));
    #[cfg(any(target_os = "linux", target_os = "android"))]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}

/// Where the control plane is.
struct Base {
    scheme: Scheme,
    authority: Authority,
    /// Comes before every path; empty as a rule.
    path: String,
}

impl Base {
    fn new(url: &str) -> Result<Self> {
        let parts = check_url(url)
            .map_err(|reason| Error::config(format!("PINBOARD_URL is {:?}: {reason}", shown(url))))?
            .into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(Error::config("PINBOARD_URL is not an absolute URL"));
        };
        let path = parts.path_and_query;
        let path = path.as_ref().map_or("", PathAndQuery::path);
        Ok(Self {
            scheme,
            authority,
            path: encoded(path.trim_end_matches('/')).into_owned(),
        })
    }

    /// The URL of a path there, and perhaps a query.
    fn join(&self, target: PathAndQuery) -> std::result::Result<Uri, http::Error> {
        let target = match encoded(target.as_str()) {
            Cow::Borrowed(_) if self.path.is_empty() => target,
            encoded => PathAndQuery::try_from(format!("{}{encoded}", self.path))?,
        };
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(target)
            .build()
    }
}

/// A target as it goes over the wire.
fn encoded(target: &str) -> Cow<'_, str> {
    utf8_percent_encode(target, NOT_IN_A_TARGET).into()
}

/// The registry over HTTP.
pub(crate) struct HttpControlPlane {
    client: HttpClient,
    base: Base,
    headers: HeaderMap,
}

impl HttpControlPlane {
    pub(crate) fn new(client: HttpClient, url: &str, token: &Secret) -> Result<Self> {
        let base = Base::new(url)?;
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", token.expose()))
            .map_err(|_| {
                Error::config("PINBOARD_TOKEN has characters that a header cannot carry")
            })?;
        authorization.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            (AUTHORIZATION, authorization),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ]);
        Ok(Self {
            client,
            base,
            headers,
        })
    }

    fn request(
        &self,
        path: &'static str,
        body: Vec<u8>,
    ) -> std::result::Result<Request<Body>, http::Error> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.base.join(PathAndQuery::from_static(path))?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }
}

impl ControlPlane for HttpControlPlane {
    fn post(
        &self,
        path: &'static str,
        body: Vec<u8>,
    ) -> BoxFuture<'static, Result<ControlAnswer, BoxError>> {
        let (client, request) = (self.client.clone(), self.request(path, body));
        Box::pin(async move {
            let (head, body) = client.0.request(request?).await?.into_parts();
            let retry_after = head
                .headers
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned);
            let body = Limited::new(body, LONGEST_ANSWER).collect().await;
            let body = body.map_err(|error| match error.downcast::<LengthLimitError>() {
                Ok(_) => "the answer of the control plane is too long".into(),
                Err(error) => error,
            })?;
            Ok(ControlAnswer {
                status: head.status,
                retry_after,
                body: body.to_bytes(),
            })
        })
    }
}

/// The way to other instances over HTTP, on the same pool.
pub(crate) struct HttpDataPlane {
    client: HttpClient,
    base: Base,
}

impl HttpDataPlane {
    pub(crate) fn new(client: HttpClient, url: &str) -> Result<Self> {
        let base = Base::new(url)?;
        Ok(Self { client, base })
    }
}

impl DataPlane for HttpDataPlane {
    fn call(
        &self,
        mut request: Request<Body>,
    ) -> BoxFuture<'static, std::result::Result<Response, BoxError>> {
        let target = std::mem::take(request.uri_mut())
            .into_parts()
            .path_and_query;
        let url = self
            .base
            .join(target.unwrap_or(PathAndQuery::from_static("/")));
        let client = self.client.0.clone();
        Box::pin(async move {
            *request.uri_mut() = url?;
            Ok(client.request(request).await?.map(Body::new))
        })
    }
}

#[cfg(test)]
mod tests;
