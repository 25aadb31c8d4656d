//! One worker's address and the connections to it. (Skeleton: the seam that others build against.)

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use pinned_domain::Domain;
use url::Url;

use super::{ExchangeError, ExchangeErrorKind, RequestHead};

/// What a [`Backend`] is made of.
#[derive(Clone, Debug)]
pub struct BackendOptions {
    /// The advertised URL: scheme, host and port, and a path that comes before every request's.
    pub url: Url,
    /// The only addresses that are ever dialled.
    pub addresses: Vec<SocketAddr>,
    /// How many lanes the server has.
    pub lanes: usize,
    /// The world.
    pub domain: Domain,
}

/// One worker's address and the connections to it.
#[derive(Debug)]
pub struct Backend {
    options: BackendOptions,
}

/// A response whose head has come.
#[derive(Debug)]
pub struct Reply {
    /// The status; 101 only when `upgraded` is there.
    pub status: StatusCode,
    /// The headers, as they came.
    pub headers: HeaderMap,
    /// The body. Polling it also sends what is left of the request's.
    pub body: ReplyBody,
}

/// The body of a [`Reply`]. Dropping it before its end closes the connection.
#[derive(Debug)]
pub struct ReplyBody {
    _private: (),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(None)
    }
}

impl Backend {
    /// A backend that no connection has been made to yet.
    #[must_use]
    pub fn new(options: BackendOptions) -> Self {
        Self { options }
    }

    /// The path prefix of the advertised URL, without a slash at its end.
    #[must_use]
    pub fn path_prefix(&self) -> &str {
        self.options.url.path().trim_end_matches('/')
    }

    /// Sends a request over an idle connection of `lane`, or a new one, and waits for the head of the response.
    ///
    /// # Errors
    ///
    /// No response came.
    pub async fn send<B>(
        &self,
        _lane: usize,
        _head: RequestHead,
        _body: B,
    ) -> Result<Reply, ExchangeError>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Err(ExchangeError {
            kind: ExchangeErrorKind::Unreachable,
            may_have_reached: false,
            source: io::ErrorKind::NotConnected.into(),
        })
    }
}
