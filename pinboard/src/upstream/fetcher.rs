//! Small requests over HTTP, each on a connection of its own.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, header};
use http_body::Body as _;
use http_body_util::Full;
use pinned_domain::Domain;
use url::{Host, Position, Url};

use super::connection::Connection;
use super::connector::Origin;
use super::exchange::{Exchange, Failure};
use super::{
    Connector, ExchangeError, ExchangeErrorKind, Fetch, FetchError, Fetched, Fetcher, Framing,
    Reply, RequestHead, Resolve, SystemResolver,
};

/// Makes small requests over HTTP. Cheap to clone.
///
/// Each has a connection of its own, so that what a server does to one says nothing about another, and the addresses
/// are those that were given or have just been looked up.
#[derive(Clone)]
pub struct HttpFetcher {
    domain: Domain,
    connector: Connector,
    resolver: Arc<dyn Resolve>,
}

impl HttpFetcher {
    /// One that dials TCP and asks the system's resolver.
    #[must_use]
    pub fn new(domain: Domain) -> Self {
        Self::with(domain, Connector::default(), SystemResolver)
    }

    /// One that dials and resolves as it is told.
    #[must_use]
    pub fn with(domain: Domain, connector: Connector, resolver: impl Resolve) -> Self {
        Self {
            domain,
            connector,
            resolver: Arc::new(resolver),
        }
    }

    async fn fetch_in_time(self, fetch: Fetch) -> Result<Fetched, FetchError> {
        let addresses = match fetch.addresses.clone() {
            Some(addresses) => addresses,
            None => self
                .addresses(&fetch.url)
                .await
                .map_err(FetchError::Connect)?,
        };
        let origin = Origin::new(&fetch.url, addresses);
        let connecting = origin.connect(&self.connector, &self.domain);
        let stream = connecting.await.map_err(failed)?;
        let mut connection = Box::new(Connection::new(stream));

        let limit = fetch.limit;
        let head = head(&fetch).map_err(FetchError::Connect)?;
        let mut exchange = Exchange::new(head, Full::new(fetch.body), &self.domain);
        let head = poll_fn(|cx| exchange.poll_head(cx, &mut connection, false, &mut |_, _| {}))
            .await
            .map_err(|failure| match failure {
                Failure::Failed(error) => failed(error),
                Failure::Stale => FetchError::Connect(io::ErrorKind::NotConnected.into()),
            })?;
        let came_at = self.domain.monotonic();
        let reply = exchange.into_reply(head, came_at, connection, None);
        whole(reply, limit).await
    }

    async fn addresses(&self, url: &Url) -> io::Result<Vec<SocketAddr>> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "not a URL to connect to");
        let port = url.port_or_known_default().ok_or_else(invalid)?;
        match url.host().ok_or_else(invalid)? {
            Host::Ipv4(ip) => Ok(vec![(ip, port).into()]),
            Host::Ipv6(ip) => Ok(vec![(ip, port).into()]),
            Host::Domain(name) => self.resolver.resolve(name, port).await,
        }
    }
}

impl Fetcher for HttpFetcher {
    fn fetch(&self, fetch: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        let this = self.clone();
        async move {
            let limit = fetch.timeout;
            let domain = this.domain.clone();
            domain
                .timeout(limit, this.fetch_in_time(fetch))
                .await
                .unwrap_or(Err(FetchError::Timeout(limit)))
        }
        .boxed()
    }
}

impl fmt::Debug for HttpFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFetcher").finish_non_exhaustive()
    }
}

fn head(fetch: &Fetch) -> io::Result<RequestHead> {
    let host = fetch
        .url
        .host_str()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a URL without a host"))?;
    let mut bytes = Vec::with_capacity(512);
    let mut line = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes.extend_from_slice(b"\r\n");
    };
    // Both are in visible ASCII: the URL percent-encodes whatever else it was given.
    let target = &fetch.url[Position::BeforePath..Position::AfterQuery];
    line(&[
        fetch.method.as_str().as_bytes(),
        b" ",
        target.as_bytes(),
        b" HTTP/1.1",
    ]);
    match fetch.url.port() {
        Some(port) => line(&[
            b"host: ",
            host.as_bytes(),
            b":",
            port.to_string().as_bytes(),
        ]),
        None => line(&[b"host: ", host.as_bytes()]),
    }
    line(&[b"connection: close"]);
    let ours = [
        header::HOST,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
    ];
    for (name, value) in &fetch.headers {
        if !ours.contains(name) {
            line(&[name.as_str().as_bytes(), b": ", value.as_bytes()]);
        }
    }
    let has_body = !fetch.body.is_empty() || !matches!(fetch.method, Method::GET | Method::HEAD);
    Ok(RequestHead {
        bytes,
        framing: match has_body {
            true => Framing::Length(fetch.body.len() as u64),
            false => Framing::None,
        },
        expect_continue: false,
        no_response_body: fetch.method == Method::HEAD,
        upgrade: None,
        accepts_trailers: false,
    })
}

async fn whole(reply: Reply, limit: usize) -> Result<Fetched, FetchError> {
    let mut body = pin!(reply.body);
    if body.size_hint().lower() > limit as u64 {
        return Err(FetchError::TooLong(limit));
    }
    let mut all = Bytes::new();
    let mut longer = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let Ok(data) = frame.map_err(broken)?.into_data() else {
            continue;
        };
        if all.len() + longer.len() + data.len() > limit {
            return Err(FetchError::TooLong(limit));
        }
        // Most are one part, and stay as they are.
        if all.is_empty() && longer.is_empty() {
            all = data;
        } else {
            longer.extend_from_slice(&std::mem::take(&mut all));
            longer.extend_from_slice(&data);
        }
    }
    Ok(Fetched {
        status: reply.status,
        headers: reply.headers,
        body: if longer.is_empty() {
            all
        } else {
            longer.freeze()
        },
    })
}

fn failed(error: ExchangeError) -> FetchError {
    match error.kind {
        ExchangeErrorKind::Unreachable | ExchangeErrorKind::ConnectTimeout => {
            FetchError::Connect(error.source)
        }
        _ => FetchError::Answer(Box::new(error)),
    }
}

fn broken(error: io::Error) -> FetchError {
    FetchError::Answer(Box::new(error))
}
