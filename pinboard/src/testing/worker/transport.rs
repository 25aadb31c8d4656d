//! The way to the registry.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use pinned_domain::Domain;
use pinned_wire::registry::Secret;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// How a worker reaches the registry: over a network, through a pipe, or by a call.
pub trait RegistryTransport: Send + Sync + 'static {
    /// Posts `body` to `path`, with the worker's token.
    ///
    /// # Errors
    ///
    /// No answer came.
    fn call(
        &self,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'static, io::Result<RegistryAnswer>>;
}

/// What the registry answered.
#[derive(Clone, Debug)]
pub struct RegistryAnswer {
    /// The status.
    pub status: StatusCode,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// The body.
    pub body: Bytes,
}

impl<T: RegistryTransport + ?Sized> RegistryTransport for Arc<T> {
    fn call(
        &self,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'static, io::Result<RegistryAnswer>> {
        (**self).call(path, body)
    }
}

/// Bytes in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for T {}

type Connect = Arc<dyn Fn() -> BoxFuture<'static, io::Result<Box<dyn ByteStream>>> + Send + Sync>;

/// The registry over HTTP/1.1, one connection for each call.
#[derive(Clone)]
pub struct HttpRegistry {
    authority: Arc<str>,
    token: Secret,
    domain: Domain,
    connect: Connect,
}

impl HttpRegistry {
    /// The registry behind a TCP address.
    #[must_use]
    pub fn tcp(address: SocketAddr, token: impl Into<String>, domain: Domain) -> Self {
        Self::over(address.to_string(), token, domain, move || {
            TcpStream::connect(address)
        })
    }

    /// The registry behind whatever `connect` gives, for `authority` as the `Host`.
    pub fn over<F, S>(
        authority: impl Into<Arc<str>>,
        token: impl Into<String>,
        domain: Domain,
        connect: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: ByteStream,
    {
        Self {
            authority: authority.into(),
            token: Secret::new(token),
            domain,
            connect: Arc::new(move || {
                let connected = connect();
                Box::pin(async move { Ok(Box::new(connected.await?) as Box<dyn ByteStream>) })
            }),
        }
    }
}

impl RegistryTransport for HttpRegistry {
    fn call(
        &self,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'static, io::Result<RegistryAnswer>> {
        let registry = self.clone();
        Box::pin(async move {
            let request = Request::builder()
                .method(Method::POST)
                .uri(path)
                .header(header::HOST, &*registry.authority)
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::CONNECTION, "close")
                .header(
                    header::AUTHORIZATION,
                    format!("Bearer {}", registry.token.expose()),
                )
                .body(Full::new(body))
                .map_err(io::Error::other)?;
            let stream = (registry.connect)().await?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
                .await
                .map_err(io::Error::other)?;
            let connection = registry.domain.spawn(connection);
            let answer = async {
                let response = sender.send_request(request).await?;
                let (head, body) = response.into_parts();
                let retry_after = head.headers.get(header::RETRY_AFTER);
                Ok(RegistryAnswer {
                    status: head.status,
                    retry_after: retry_after
                        .and_then(|value| value.to_str().ok())
                        .map(str::to_owned),
                    body: body.collect().await?.to_bytes(),
                })
            };
            let answer: Result<_, hyper::Error> = answer.await;
            connection.abort();
            answer.map_err(io::Error::other)
        })
    }
}

impl fmt::Debug for HttpRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRegistry")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}
