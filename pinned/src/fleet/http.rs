//! The control plane over HTTP (W2.3, W14.6).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request};
use http_body::{Body as HttpBody, Frame, SizeHint};
use pinned_wire::registry::Secret;
use sync_wrapper::SyncWrapper;

use super::transport::{ControlAnswer, ControlPlane, DataPlane};
use crate::error::{BoxError, Error, Result};

/// The longest answer that is read, in bytes: some tens of thousands of duplicates.
const LONGEST_ANSWER: usize = 16 << 20;

/// The registry over HTTP, on one pool of connections.
pub(crate) struct HttpControlPlane {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
}

impl HttpControlPlane {
    pub(crate) fn new(client: reqwest::Client, url: &str, token: &Secret) -> Result<Self> {
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
            url: url.trim_end_matches('/').to_owned(),
            headers,
        })
    }
}

impl ControlPlane for HttpControlPlane {
    fn post(
        &self,
        path: &'static str,
        body: Vec<u8>,
    ) -> BoxFuture<'static, Result<ControlAnswer, BoxError>> {
        let request = self
            .client
            .post(format!("{}{path}", self.url))
            .headers(self.headers.clone())
            .body(body);
        Box::pin(async move {
            let mut response = request.send().await?;
            let status = response.status();
            let retry_after = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned);
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > LONGEST_ANSWER {
                    return Err("the answer of the control plane is too long".into());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(ControlAnswer {
                status,
                retry_after,
                body: body.into(),
            })
        })
    }
}

/// The one HTTP client of a worker: no redirects, no proxies, the system's root certificates.
pub(crate) fn client() -> Result<reqwest::Client> {
    let mut roots = rustls::RootCertStore::empty();
    // A root that cannot be read is one root less; without any, only plain HTTP works, and says so when it does not.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::config(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .http1_only()
        .build()
        .map_err(|error| Error::config(format!("the HTTP client cannot be set up: {error}")))
}

/// The way to other instances over HTTP, on the same pool.
pub(crate) struct HttpDataPlane {
    client: reqwest::Client,
    url: String,
}

impl HttpDataPlane {
    pub(crate) fn new(client: reqwest::Client, url: &str) -> Self {
        Self {
            client,
            url: url.trim_end_matches('/').to_owned(),
        }
    }
}

impl DataPlane for HttpDataPlane {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, std::result::Result<Response, BoxError>> {
        let (head, body) = request.into_parts();
        let target = head
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let url = format!("{}{target}", self.url);
        let mut call = self.client.request(head.method, url).headers(head.headers);
        if !body.is_end_stream() {
            call = call.body(reqwest::Body::wrap(Shareable {
                size: body.size_hint(),
                body: SyncWrapper::new(body),
            }));
        }
        Box::pin(async move {
            let answer = call.send().await?;
            Ok(http::Response::<reqwest::Body>::from(answer).map(Body::new))
        })
    }
}

/// A body that may be shared, because nobody looks at it but its owner.
struct Shareable {
    body: SyncWrapper<Body>,
    /// As it was when nothing had been read: it decides how the body is framed.
    size: SizeHint,
}

impl HttpBody for Shareable {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, BoxError>>> {
        Pin::new(self.body.get_mut())
            .poll_frame(cx)
            .map_err(Into::into)
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}
