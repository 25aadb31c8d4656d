//! A server: what all its lanes and connections share.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use hyper::server::conn::{http1, http2};
use metrics::{Gauge, gauge};
use pinned_domain::Domain;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

use super::connection::Connection;
use super::limit::Limit;
use super::rt::{DomainExecutor, DomainTimer};
use super::table::Table;
use super::vitals::Nudge;
use super::{Lifecycle, ServerOptions, refusal, socket};
use crate::metrics::names;
use crate::proxy::Proxy;

/// The most bytes of a request's head. Browsers send cookies of 16 KiB at most.
const MOST_HEAD: usize = 32 << 10;
/// How much of a body is read, or of an answer written, at once.
const MOST_BUFFERED: usize = 64 << 10;
/// How often a client of HTTP/2 is asked whether it is there, and how long it may take to say so.
const PING: Duration = Duration::from_secs(20);
/// How often connections are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long the last words of a tunnel may take.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long accepting pauses when there are no more descriptors, or no memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves clients: instances through the proxy, and everything else through a router (P1.6, P5.12). Cheap to clone; clones are the
/// same.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

/// What all connections share.
pub(super) struct Shared {
    pub(super) proxy: Proxy,
    pub(super) router: axum::Router,
    pub(super) http1: http1::Builder,
    pub(super) http2: http2::Builder<DomainExecutor>,
    pub(super) domain: Domain,
    pub(super) active: Gauge,
    pub(super) refusing: AtomicUsize,
    lifecycle: Lifecycle,
    lanes: Box<[Arc<Table>]>,
    limit: Arc<Limit>,
    opened: AtomicU64,
    options: ServerOptions,
}

/// How many connections there are, and have been (P3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Those that are held now.
    pub now: usize,
    /// Those that were ever accepted.
    pub total: u64,
}

impl Server {
    /// Serves instances through `proxy`, and `/registry/*`, `/healthz`, `/readyz` and `/metrics` through `router`.
    ///
    /// Requests to the router carry [`ConnectInfo<SocketAddr>`](axum::extract::ConnectInfo).
    #[must_use]
    pub fn new(
        proxy: Proxy,
        router: axum::Router,
        lifecycle: Lifecycle,
        domain: Domain,
        options: ServerOptions,
    ) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            // Head and body in one buffer and one plain write: for small answers, gathering them costs more than the copy.
            .writev(false)
            // What takes too long is found by looking at all connections now and then.
            .header_read_timeout(None)
            .max_buf_size(MOST_BUFFERED)
            .max_header_size(MOST_HEAD);
        let mut http2 = http2::Builder::new(DomainExecutor(domain.clone()));
        http2
            .timer(DomainTimer(domain.clone()))
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            .max_concurrent_streams(256)
            .max_header_list_size(MOST_HEAD as u32)
            .initial_stream_window_size(256 << 10)
            .initial_connection_window_size(1 << 20)
            .max_send_buf_size(128 << 10);
        Self {
            shared: Arc::new(Shared {
                proxy,
                router,
                http1,
                http2,
                domain,
                active: gauge!(names::ACTIVE_CONNECTIONS, "kind" => names::connection::CLIENT),
                refusing: AtomicUsize::new(0),
                lifecycle,
                lanes: (0..options.lanes.max(1)).map(|_| Arc::default()).collect(),
                limit: Limit::new(options.max_connections),
                opened: AtomicU64::new(0),
                options,
            }),
        }
    }

    /// Accepts connections on `listener` for `lane`, each served by a task of its own, until the server stops. Dropping the
    /// future ends the lane's connections.
    ///
    /// # Errors
    ///
    /// The listener does not work.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no connection is accepted and not served.
    pub async fn serve(&self, lane: usize, listener: TcpListener) -> io::Result<()> {
        let _end = EndLane(self.table(lane));
        // What is wrong with the listener is said now, and not while clients wait.
        listener.local_addr()?;
        let closing = self.shared.lifecycle.closing();
        tokio::select! {
            biased;
            () = self.accept(lane, &listener) => {}
            () = self.watch(lane) => {}
            () = closing => {}
        }
        // Those that the system has accepted already would be reset.
        while let Some(Ok((stream, peer))) = listener.accept().now_or_never() {
            self.admit(lane, stream, peer);
        }
        drop(listener);
        tokio::select! {
            () = self.shared.lifecycle.ended() => {}
            () = self.watch(lane) => {}
        }
        Ok(())
    }

    /// Serves one connection over `stream`, whatever that is, until it ends; a tunnel that it becomes goes on by itself. Limits on
    /// time need [`watch`](Self::watch) beside it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn serve_connection<S>(&self, lane: usize, stream: S, peer: SocketAddr)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        match self.shared.limit.permit() {
            Some(permit) => {
                let connection = self.connection(lane, peer, permit);
                connection.serve(stream).await;
            }
            None => refusal::refuse(&self.shared, stream).await,
        }
    }

    /// Ends connections of a lane on which a head takes too long, or no request comes. Never returns. [`serve`](Self::serve) does
    /// this as well.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn watch(&self, lane: usize) {
        let table = self.table(lane);
        let patience = self.shared.options.patience();
        loop {
            self.shared.domain.sleep(LOOK).await;
            table.look(self.shared.domain.monotonic(), patience);
        }
    }

    /// Stops (P1.6): readiness turns at once, new connections are still answered for a moment, then no more are taken, open
    /// requests and tunnels get some time to end, tunnels are closed with a word, and what is left is cut off. A second call
    /// waits for the end of the first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the server half stopped: call [`stop_now`](Self::stop_now) then.
    pub async fn stop(&self) {
        let lifecycle = &self.shared.lifecycle;
        if !lifecycle.leave() {
            return lifecycle.ended().await;
        }
        tokio::select! {
            () = self.wind_down() => lifecycle.end(),
            // By `stop_now`.
            () = lifecycle.ended() => {}
        }
    }

    async fn wind_down(&self) {
        let shared = &*self.shared;
        shared.domain.sleep(shared.options.grace).await;
        shared.lifecycle.close();
        for table in &shared.lanes {
            table.leave();
        }
        if self.is_empty_within(shared.options.drain).await {
            return;
        }
        tracing::info!(target: "pinboard::server", open = shared.limit.held(), "closing what is still open");
        self.tell(Nudge::Close);
        if !self.is_empty_within(LAST_WORDS).await {
            self.tell(Nudge::End);
            self.is_empty_within(LAST_WORDS).await;
        }
    }

    /// Stops without waiting for anyone.
    pub fn stop_now(&self) {
        self.shared.lifecycle.close();
        for table in &self.shared.lanes {
            table.leave();
        }
        self.tell(Nudge::End);
        self.shared.lifecycle.end();
    }

    /// How far the server is on its way out.
    #[must_use]
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.shared.lifecycle
    }

    /// How many connections there are, and have been.
    #[must_use]
    pub fn connections(&self) -> ConnectionCounts {
        ConnectionCounts {
            now: self.shared.limit.held(),
            total: self.shared.opened.load(Ordering::Relaxed),
        }
    }

    /// How many lanes it has.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.shared.lanes.len()
    }

    /// Accepts for ever.
    async fn accept(&self, lane: usize, listener: &TcpListener) {
        let mut fails = false;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    fails = false;
                    self.admit(lane, stream, peer);
                }
                // The client has left while it waited.
                Err(error) if is_of_the_client(&error) => {}
                Err(error) => {
                    // Said once, however long it lasts.
                    if !std::mem::replace(&mut fails, true) {
                        tracing::warn!(target: "pinboard::server", %error, "cannot accept connections");
                    }
                    self.shared.domain.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(&self, lane: usize, stream: TcpStream, peer: SocketAddr) {
        socket::tune(&stream);
        match self.shared.limit.permit() {
            Some(permit) => {
                let connection = self.connection(lane, peer, permit);
                self.shared.domain.spawn(connection.serve(stream));
            }
            None => {
                let shared = Arc::clone(&self.shared);
                let refusing = async move { refusal::refuse(&shared, stream).await };
                self.shared.domain.spawn(refusing);
            }
        }
    }

    fn connection(
        &self,
        lane: usize,
        peer: SocketAddr,
        permit: super::limit::Permit,
    ) -> Arc<Connection> {
        let shared = Arc::clone(&self.shared);
        shared.opened.fetch_add(1, Ordering::Relaxed);
        let registered = self.table(lane).register(shared.domain.monotonic());
        Connection::new(shared, peer, lane, registered, permit)
    }

    fn table(&self, lane: usize) -> Arc<Table> {
        let lanes = &self.shared.lanes;
        Arc::clone(&lanes[lane % lanes.len()])
    }

    fn tell(&self, nudge: Nudge) {
        for table in &self.shared.lanes {
            table.tell(nudge);
        }
    }

    async fn is_empty_within(&self, limit: Duration) -> bool {
        let empty = join_all(self.shared.lanes.iter().map(|table| table.wait_empty()));
        self.shared.domain.timeout(limit, empty).await.is_ok()
    }
}

/// Whether only one connection is affected.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Ends the connections of a lane that is given up.
struct EndLane(Arc<Table>);

impl Drop for EndLane {
    fn drop(&mut self) {
        self.0.tell(Nudge::End);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("lanes", &self.lanes())
            .field("connections", &self.connections())
            .field("lifecycle", &self.shared.lifecycle)
            .finish_non_exhaustive()
    }
}
