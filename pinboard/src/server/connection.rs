//! One connection of a client, from its first byte to its last.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::extract::ConnectInfo;
use futures_util::FutureExt;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tower::ServiceExt as _;

use super::body::ServedBody;
use super::io::{ClientIo, Protocol};
use super::limit::Permit;
use super::serve::Shared;
use super::table::Registered;
use super::vitals::{Listener, Nudge, Upgrade, Vitals, Work};
use crate::headers::has;
use crate::proxy::{Client, Held, Target, Tunnel};

/// The first segments of paths that are not instances'.
const RESERVED: [&str; 4] = ["registry", "healthz", "readyz", "metrics"];

/// A connection of a client, held by whatever is done for it.
pub(super) struct Connection {
    shared: Arc<Shared>,
    peer: SocketAddr,
    client: Client,
    registered: Registered,
    /// Where hyper puts the connection at its end, once a request has asked for an upgrade and been refused.
    refused: Mutex<Option<OnUpgrade>>,
    _permit: Permit,
}

impl Connection {
    pub(super) fn new(
        shared: Arc<Shared>,
        peer: SocketAddr,
        lane: usize,
        registered: Registered,
        permit: Permit,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            peer,
            client: Client::new(peer, lane),
            registered,
            refused: Mutex::default(),
            _permit: permit,
        })
    }

    /// Serves until the client leaves, or has to. A tunnel that the connection becomes goes on by itself.
    pub(super) async fn serve<S>(self: Arc<Self>, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let active = Held::new(self.shared.active.clone());
        let mut io = ClientIo::new(
            stream,
            Arc::clone(self.vitals()),
            self.shared.domain.clone(),
        );
        // What the client has sent comes first: it is answered, whatever else there is.
        let protocol = tokio::select! {
            biased;
            protocol = io.sniff() => protocol,
            () = self.vitals().told(Listener::Connection, Nudge::Goodbye) => return,
        };
        let Ok(Some(protocol)) = protocol else {
            return;
        };
        let io = TokioIo::new(io);
        let connection = Arc::clone(&self);
        let service = service_fn(move |request| Arc::clone(&connection).answer(request));
        // One that breaks off is its client's affair.
        match protocol {
            Protocol::Http1 => {
                let http = self.shared.http1.serve_connection(io, service);
                self.drive(http.with_upgrades()).await;
                self.shut_down().await;
            }
            Protocol::Http2 => {
                let http = self.shared.http2.serve_connection(io, service);
                self.drive(http).await;
            }
        }
        drop(active);
    }

    /// Runs a connection while listening to what it is told.
    async fn drive(&self, connection: impl Graceful) {
        let mut connection = pin!(connection);
        let mut heard = Nudge::Nothing;
        let mut listening: Option<Waker> = None;
        poll_fn(|cx| {
            // Once is enough, unless the connection is moved to another task.
            let listens = listening
                .as_ref()
                .is_some_and(|task| task.will_wake(cx.waker()));
            if !listens {
                self.vitals().listen(Listener::Connection, cx);
                listening = Some(cx.waker().clone());
            }
            loop {
                if connection.as_mut().poll_end(cx).is_ready() {
                    return Poll::Ready(());
                }
                let nudge = self.vitals().nudge();
                if nudge == Nudge::End {
                    return Poll::Ready(());
                }
                if nudge == heard || heard >= Nudge::Goodbye {
                    return Poll::Pending;
                }
                heard = nudge;
                connection.as_mut().say_goodbye();
            }
        })
        .await;
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<ServedBody>, std::convert::Infallible> {
        let work = self.vitals().begin();
        // As the strict reading asks it, which waits for a decision then.
        let asks_upgrade = has(request.headers(), &UPGRADE);
        let on_upgrade = match asks_upgrade {
            true => request.extensions().get::<OnUpgrade>().cloned(),
            false => None,
        };
        let (mut response, tunnel) = if is_reserved(&request) {
            (self.route(request, work).await, None)
        } else {
            let (mut parts, body) = request.into_parts();
            let proxy = &self.shared.proxy;
            let handled = proxy.handle(&self.client, &mut parts, body).await;
            match handled.tunnel {
                None => {
                    let body = |body| ServedBody::proxied(body, Some(work));
                    (handled.response.map(body), None)
                }
                Some(tunnel) => {
                    let body = |body| ServedBody::proxied(body, None);
                    (handled.response.map(body), Some((tunnel, work)))
                }
            }
        };
        match tunnel {
            Some((tunnel, work)) => {
                self.vitals().decide_upgrade(Upgrade::Granted);
                let domain = self.shared.domain.clone();
                domain.spawn(self.carry(tunnel, work));
            }
            None if asks_upgrade => self.refuse_upgrade(on_upgrade, &mut response),
            None => {}
        }
        Ok(response)
    }

    /// Answers what is not an instance's.
    async fn route(&self, mut request: Request<Incoming>, work: Work) -> Response<ServedBody> {
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let router = self.shared.router.clone();
        let answer = router.oneshot(request.map(axum::body::Body::new)).await;
        answer
            .unwrap_or_else(|never| match never {})
            .map(|body| ServedBody::routed(body, work))
    }

    /// The next request is read. Not so when something came before this was known, which was not looked at.
    fn refuse_upgrade(&self, on_upgrade: Option<OnUpgrade>, response: &mut Response<ServedBody>) {
        if self.vitals().was_early() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        self.vitals().decide_upgrade(Upgrade::Refused);
        *self.refused.lock() = on_upgrade;
    }

    /// Ends a connection that hyper has handed over rather than ended, although nobody wanted it.
    async fn shut_down(&self) {
        let refused = self.refused.lock().take();
        // It is there, or has been dropped.
        if let Some(Some(Ok(connection))) = refused.map(FutureExt::now_or_never) {
            let mut connection = TokioIo::new(connection);
            tokio::select! {
                _ = connection.shutdown() => {}
                () = self.vitals().told(Listener::Connection, Nudge::End) => {}
            }
        }
    }

    /// Carries a tunnel to its end.
    async fn carry(self: Arc<Self>, tunnel: Box<Tunnel>, work: Work) {
        let vitals = self.vitals();
        tokio::select! {
            () = tunnel.run(vitals.told(Listener::Tunnel, Nudge::Close)) => {}
            () = vitals.told(Listener::Tunnel, Nudge::End) => {}
        }
        drop(work);
    }

    fn vitals(&self) -> &Arc<Vitals> {
        self.registered.vitals()
    }
}

fn is_reserved(request: &Request<Incoming>) -> bool {
    RESERVED.contains(&Target::first_segment(request.uri().path()))
}

/// A connection that can be told to finish what it has begun and then to end.
trait Graceful {
    fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;
    fn say_goodbye(self: Pin<&mut Self>);
}

impl<I, S> Graceful for hyper::server::conn::http1::UpgradeableConnection<I, S>
where
    S: hyper::service::HttpService<Incoming, ResBody = ServedBody>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Future::poll(self, cx).map(drop)
    }

    fn say_goodbye(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, E> Graceful for hyper::server::conn::http2::Connection<I, S, E>
where
    S: hyper::service::HttpService<Incoming, ResBody = ServedBody>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, ServedBody>,
{
    fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Future::poll(self, cx).map(drop)
    }

    fn say_goodbye(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
