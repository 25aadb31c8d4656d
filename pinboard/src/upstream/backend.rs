//! One worker's address and the connections to it.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::Body;
use pinned_domain::Domain;
use tokio::time::Instant;
use url::Url;

use super::connection::Connection;
use super::connector::Origin;
use super::exchange::{Exchange, Failure};
use super::pool::Lane;
use super::{Connector, ExchangeError, Reply, RequestHead};

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
///
/// Each lane has idle connections of its own, so that a connection is polled by one thread all its life. Dropping a
/// backend closes the idle ones; responses that are under way go on to their end.
///
/// ```no_run
/// use bytes::Bytes;
/// use http_body_util::{BodyExt as _, Full};
/// use pinboard::upstream::{Backend, BackendOptions, Framing, RequestHead};
/// use pinned_domain::Domain;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = Backend::new(BackendOptions {
///     url: "http://worker.example:8000/".parse()?,
///     addresses: vec![([10, 0, 0, 7], 8000).into()],
///     lanes: 2,
///     domain: Domain::real(),
/// });
/// let head = RequestHead {
///     bytes: b"POST /rooms/blue/say HTTP/1.1\r\nhost: rooms.example\r\n".to_vec(),
///     framing: Framing::Length(5),
///     expect_continue: false,
///     no_response_body: false,
///     upgrade: None,
///     accepts_trailers: false,
/// };
/// let reply = backend.send(0, head, Full::new(Bytes::from_static(b"hello"))).await?;
/// println!("{}: {:?}", reply.status, reply.body.collect().await?.to_bytes());
/// # Ok(()) }
/// ```
pub struct Backend {
    options: BackendOptions,
    connector: Connector,
    origin: Origin,
    lanes: Box<[Arc<Lane>]>,
}

impl Backend {
    /// A backend that no connection has been made to yet.
    #[must_use]
    pub fn new(options: BackendOptions) -> Self {
        Self::with_connector(options, Connector::default())
    }

    /// As [`new`](Self::new), over connections that `connector` makes.
    #[must_use]
    pub fn with_connector(options: BackendOptions, connector: Connector) -> Self {
        let lane = |_| Arc::new(Lane::new(options.domain.clone()));
        Self {
            lanes: (0..options.lanes.max(1)).map(lane).collect(),
            origin: Origin::new(&options.url, options.addresses.clone()),
            connector,
            options,
        }
    }

    /// The path prefix of the advertised URL, without a slash at its end.
    #[must_use]
    pub fn path_prefix(&self) -> &str {
        self.options.url.path().trim_end_matches('/')
    }

    /// Sends a request over an idle connection of `lane`, or a new one, and waits for the head of the response.
    ///
    /// The body is sent while the response is waited for, and goes on to be sent as the body of an early response is
    /// polled. One that waits for a `100 Continue` is sent when that comes, or after a second without an answer. If the
    /// final response comes first, it is not sent, unless that is a success whose own body is still to come: its sender
    /// may be about to read. Other interim responses are skipped. There is no limit on how long a response may take.
    ///
    /// An idle connection that turns out to have been closed is left for another as long as nothing was written.
    ///
    /// # Errors
    ///
    /// No response came.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; the worker may have got the request, or a part of it.
    pub fn send<B>(
        &self,
        lane: usize,
        head: RequestHead,
        body: B,
    ) -> impl Future<Output = Result<Reply, ExchangeError>> + Send
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.send_at(self.options.domain.monotonic(), lane, head, body)
    }

    /// As [`send`](Self::send), for whoever has just read the clock: `now` decides which idle connections are still used, and
    /// an older time would use one that has expired.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    pub fn send_at<B>(
        &self,
        now: Instant,
        lane: usize,
        head: RequestHead,
        body: B,
    ) -> impl Future<Output = Result<Reply, ExchangeError>> + Send
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.begin(now, lane, head, body, |_, _| {})
    }

    /// As [`send`](Self::send); `interim` is told of each interim response but `100` and `101` (RFC 9110, 15.2).
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    pub fn send_with_interim<B>(
        &self,
        lane: usize,
        head: RequestHead,
        body: B,
        interim: impl FnMut(StatusCode, HeaderMap) + Send,
    ) -> impl Future<Output = Result<Reply, ExchangeError>> + Send
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let now = self.options.domain.monotonic();
        self.begin(now, lane, head, body, interim)
    }

    fn begin<B>(
        &self,
        now: Instant,
        lane: usize,
        head: RequestHead,
        body: B,
        interim: impl FnMut(StatusCode, HeaderMap) + Send,
    ) -> impl Future<Output = Result<Reply, ExchangeError>> + Send
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // Outside of any `async`, each of which would keep a copy of what it is given.
        self.exchange(
            now,
            &self.lanes[lane % self.lanes.len()],
            Exchange::new(head, body, &self.options.domain),
            interim,
        )
    }

    async fn exchange<B>(
        &self,
        mut now: Instant,
        lane: &Arc<Lane>,
        mut exchange: Exchange<B>,
        mut interim: impl FnMut(StatusCode, HeaderMap) + Send,
    ) -> Result<Reply, ExchangeError>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        loop {
            let idle = lane.take(now);
            let was_idle = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                // Boxed, as it is large and most requests never get here.
                None => Box::pin(self.connect()).await?,
            };
            let head =
                poll_fn(|cx| exchange.poll_head(cx, &mut connection, was_idle, &mut interim));
            match head.await {
                Ok(head) => {
                    let came_at = self.options.domain.monotonic();
                    return Ok(exchange.into_reply(head, came_at, connection, Some(lane)));
                }
                Err(Failure::Stale) => now = self.options.domain.monotonic(),
                Err(Failure::Failed(error)) => return Err(error),
            }
        }
    }

    /// Closes connections that have been idle for too long to be used again.
    ///
    /// Each lane does so as it is used; this is for those that are not. Call it about once a second.
    pub fn reap(&self) {
        for lane in &self.lanes {
            lane.reap();
        }
    }

    /// How many idle connections there are.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.lanes.iter().map(|lane| lane.len()).sum()
    }

    async fn connect(&self) -> Result<Box<Connection>, ExchangeError> {
        let connecting = self.origin.connect(&self.connector, &self.options.domain);
        Ok(Box::new(Connection::new(connecting.await?)))
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without what else may stand in a URL.
        f.debug_struct("Backend")
            .field("host", &self.options.url.host_str())
            .field("origin", &self.origin)
            .field("lanes", &self.lanes)
            .finish_non_exhaustive()
    }
}
