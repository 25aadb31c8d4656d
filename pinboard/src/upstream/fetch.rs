//! Small requests with small answers: challenges, stats, wakes, key sets.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

/// One request, to be answered whole.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The method.
    pub method: Method,
    /// The whole URL, `http` or `https`.
    pub url: Url,
    /// The only addresses that may be dialled for it; `None` resolves the host.
    pub addresses: Option<Vec<SocketAddr>>,
    /// Headers, beyond `Host`, `Content-Length` and `Connection`.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// How long all of it may take.
    pub timeout: Duration,
    /// The largest body that is read, in bytes; a longer one is an error.
    pub limit: usize,
}

impl Fetch {
    /// A `GET` of `url` that may take 5 s and answer 1 MiB.
    #[must_use]
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            addresses: None,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: Duration::from_secs(5),
            limit: 1 << 20,
        }
    }
}

/// What came back; redirects come back as they are.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

/// Nothing useful came back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// No connection was made.
    #[error("cannot connect")]
    Connect(#[source] std::io::Error),
    /// The connection broke, or what came was not HTTP.
    #[error("no valid answer came")]
    Answer(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It took longer than it may.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The answer is longer than it may be.
    #[error("the answer has more than {0} bytes")]
    TooLong(usize),
}

/// Makes small requests.
pub trait Fetcher: Send + Sync + 'static {
    /// Makes one. Never follows redirects, never sends again.
    ///
    /// # Errors
    ///
    /// As [`FetchError`] says.
    fn fetch(&self, fetch: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>>;
}
