//! The one place where a socket is, shared by its handler and its host.

use std::{
    mem,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use axum::{body::Body, response::Response};
use futures_util::future::{Either, pending};
use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tungstenite::protocol::Role;

use super::{
    CloseFrame, Message, SocketError,
    afterlife::Afterlife,
    close_code,
    handshake::Handshake,
    link::{KeepAlive, Limits, Link, Step},
    state::{Ended, Inner, State},
    transport::{Io, Transport},
    wakes::{Wakes, yield_if_due},
};
use crate::domain::Domain;

/// How long the host waits for the peer at the end of a socket: to take what is queued and to answer the close frame.
pub(super) const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// A socket from its request to its end.
///
/// Each operation is one look under the lock, which no await is ever under; who has to wait does so outside, and looks
/// again after the next wake. Ending the socket takes the connection out of the slot in one step, so that everyone
/// else finds it gone, wherever they were.
pub(super) struct Slot {
    domain: Domain,
    wakes: Arc<Wakes>,
    /// The waker over `wakes`, made once.
    waker: Waker,
    /// Which end of the conversation this is.
    pub(super) role: Role,
    /// The subprotocols that the client offers.
    offered: Vec<String>,
    /// The subprotocol in use, known from the moment of acceptance.
    selected: OnceLock<String>,
    inner: Mutex<Inner>,
}

/// What was taken out of a slot at its end.
enum Taken {
    Upgrading(Transport, Limits),
    Open(Box<Link>),
}

impl Slot {
    pub(super) fn new(
        domain: Domain,
        mut handshake: Handshake,
        transport: Transport,
        answer: oneshot::Sender<Response>,
    ) -> Self {
        let wakes = Arc::new(Wakes::default());
        Self {
            domain,
            waker: Waker::from(wakes.clone()),
            wakes,
            role: Role::Server,
            offered: mem::take(&mut handshake.offered),
            selected: OnceLock::new(),
            inner: Mutex::new(Inner {
                state: State::Pending {
                    answer,
                    handshake,
                    transport,
                },
                accepted: false,
                heir: None,
            }),
        }
    }

    /// The client's end over `transport`, of a request that has been answered with the upgrade and `protocol`.
    pub(super) fn client(
        domain: Domain,
        transport: Transport,
        limits: Limits,
        protocol: Option<String>,
    ) -> (Arc<Self>, Afterlife) {
        let wakes = Arc::new(Wakes::default());
        let (heir, dropped) = oneshot::channel();
        let slot = Arc::new(Self {
            waker: Waker::from(wakes.clone()),
            wakes: wakes.clone(),
            domain: domain.clone(),
            role: Role::Client,
            offered: Vec::new(),
            selected: protocol.map(OnceLock::from).unwrap_or_default(),
            inner: Mutex::new(Inner {
                state: State::Upgrading { transport, limits },
                accepted: true,
                heir: Some(heir),
            }),
        });
        let afterlife = Afterlife::new(&slot, domain, wakes, dropped);
        (slot, afterlife)
    }

    /// Waits for the connection of a socket that was granted.
    pub(super) async fn opened(&self) -> Result<(), SocketError> {
        self.until_ready(|inner, cx| Poll::Ready(ready!(inner.poll_open(self, cx)).map(drop)))
            .await
    }

    pub(super) fn offered(&self) -> &[String] {
        &self.offered
    }

    pub(super) fn selected(&self) -> Option<&str> {
        self.selected.get().map(String::as_str)
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.inner.lock().accepted
    }

    /// Whether nothing more can be sent.
    pub(super) fn is_closed(&self) -> bool {
        match &self.inner.lock().state {
            State::Pending { .. } | State::Upgrading { .. } => false,
            State::Open(link) => link.is_closed(),
            State::Ended { .. } => true,
        }
    }

    /// Opens the socket, unless it is open already, and waits for the connection.
    ///
    /// Cancel safe: the answer stays given, and the next operation goes on waiting.
    pub(super) async fn accept(
        &self,
        protocol: Option<String>,
        limits: Limits,
    ) -> Result<(), SocketError> {
        self.answer_with_accept(protocol, limits)?;
        self.until_ready(|inner, cx| {
            let link = ready!(inner.poll_open(self, cx))?;
            link.set_limits(limits);
            Poll::Ready(Ok(()))
        })
        .await
    }

    fn answer_with_accept(
        &self,
        protocol: Option<String>,
        limits: Limits,
    ) -> Result<(), SocketError> {
        let mut inner = self.inner.lock();
        if !matches!(inner.state, State::Pending { .. }) {
            return Ok(());
        }
        let State::Pending {
            answer,
            handshake,
            transport,
        } = inner.end(Ended::PeerLeft)
        else {
            return Ok(());
        };
        if answer.send(handshake.accept(protocol.as_deref())).is_err() {
            return Err(SocketError::ClientLeft);
        }
        if let Some(protocol) = protocol {
            // Empty until here: only the step out of `Pending` fills it, and that is taken once.
            let _ = self.selected.set(protocol);
        }
        inner.accepted = true;
        inner.state = State::Upgrading { transport, limits };
        Ok(())
    }

    /// Answers the request with `response` instead of the upgrade; false if it has an answer.
    pub(super) fn refuse(&self, response: Response) -> bool {
        let mut inner = self.inner.lock();
        if !matches!(inner.state, State::Pending { .. }) {
            return false;
        }
        if let State::Pending { answer, .. } = inner.end(Ended::Refused) {
            // Nobody is there to read it if this fails, and that is all the same to the one who refuses.
            let _ = answer.send(response);
        }
        true
    }

    /// The handler's refusal: of the upgrade, or, where the authorizer has accepted it, of the socket.
    pub(super) fn refuse_or_close(&self, response: Response) {
        if self.refuse(response) {
            return;
        }
        if let State::Open(link) = &mut self.inner.lock().state {
            link.start_close(Some(CloseFrame::new(close_code::POLICY_VIOLATION, "")));
        }
        self.wakes.wake_all();
    }

    /// The next message; none after the last, and after the one error that ends the socket.
    pub(super) async fn recv(&self, keep_alive: KeepAlive) -> Option<Result<Message, SocketError>> {
        loop {
            let changed = self.wakes.changed();
            let look_again = match self.step(keep_alive) {
                Step::Item(item) => return Some(item),
                Step::End => return None,
                Step::Wait(at) => match at {
                    Some(at) => Either::Left(self.domain.sleep_until(at)),
                    None => Either::Right(pending()),
                },
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = look_again => {}
            }
            yield_if_due().await;
        }
    }

    /// One look for the next message.
    pub(super) fn step(&self, keep_alive: KeepAlive) -> Step {
        let mut inner = self.inner.lock();
        let mut cx = Context::from_waker(&self.waker);
        let step = match inner.poll_open(self, &mut cx) {
            Poll::Ready(Ok(link)) => link.step(keep_alive, || self.domain.monotonic()),
            Poll::Ready(Err(_)) => inner.tell_end(self.role),
            Poll::Pending => Step::Wait(None),
        };
        if let Step::Item(Err(SocketError::ClientLeft | SocketError::ServerLeft)) = step {
            inner.state = State::Ended {
                why: Ended::PeerLeft,
                told: true,
            };
            // Senders may be waiting for the peer to take what it never will.
            drop(inner);
            self.wakes.wake_all();
        }
        step
    }

    /// Sends `message`; ready once the connection has taken all of it.
    pub(super) async fn send(&self, message: Message) -> Result<(), SocketError> {
        let mut message = Some(message.into_wire()?);
        self.until_ready(|inner, cx| {
            let link = ready!(inner.poll_open(self, cx))?;
            link.poll_send(&mut message)
        })
        .await
    }

    /// Queues `message` without waiting for room.
    pub(super) fn queue(&self, message: Message) -> Result<(), SocketError> {
        let message = message.into_wire()?;
        let mut inner = self.inner.lock();
        match &mut inner.state {
            State::Open(link) => link.queue(message),
            State::Ended { why, .. } => Err(why.error(self.role)),
            State::Pending { .. } | State::Upgrading { .. } => Err(SocketError::NotAccepted),
        }
    }

    /// One look at whether all that is queued has been taken.
    pub(super) fn poll_flush(&self) -> Poll<Result<(), SocketError>> {
        self.inner
            .lock()
            .poll_flush(self, &mut Context::from_waker(&self.waker))
    }

    /// Waits until all that is queued has been taken.
    pub(super) async fn flush(&self) -> Result<(), SocketError> {
        self.until_ready(|inner, cx| inner.poll_flush(self, cx))
            .await
    }

    /// Sends a close frame; nothing if the socket is closed or over.
    pub(super) async fn close(&self, frame: Option<CloseFrame>) -> Result<(), SocketError> {
        if self.is_closed() {
            return Ok(());
        }
        match self.send(Message::Close(frame)).await {
            // Another task was first.
            Err(
                SocketError::Closed
                | SocketError::EndedByHost
                | SocketError::ClientLeft
                | SocketError::ServerLeft,
            ) => Ok(()),
            result => result,
        }
    }

    /// Takes the connection from everyone else, says goodbye, and drops it.
    pub(super) async fn end(&self, frame: CloseFrame) {
        let taken = self.take();
        self.wakes.wake_all();
        let goodbye = async {
            let mut link = match taken? {
                Taken::Open(link) => link,
                Taken::Upgrading(mut transport, limits) => {
                    let io = self
                        .wakes
                        .until_ready(&self.waker, |cx| transport.poll_take(cx))
                        .await?;
                    self.link(io, limits)
                }
            };
            link.start_close(Some(frame));
            self.wakes
                .until_ready(&self.waker, |_| link.poll_goodbye())
                .await;
            Some(())
        };
        // A peer that takes nothing, or answers nothing, is left behind.
        let _ = self.domain.timeout(CLOSE_WAIT, goodbye).await;
    }

    fn take(&self) -> Option<Taken> {
        let mut inner = self.inner.lock();
        match inner.end(Ended::ByHost) {
            State::Pending { answer, .. } => {
                let _ = answer.send(forbidden());
                None
            }
            State::Upgrading { transport, limits } => Some(Taken::Upgrading(transport, limits)),
            State::Open(link) => Some(Taken::Open(link)),
            ended @ State::Ended { .. } => {
                inner.state = ended;
                None
            }
        }
    }

    pub(super) fn link(&self, io: Io, limits: Limits) -> Box<Link> {
        Box::new(Link::new(io, self.role, limits, self.domain.monotonic()))
    }

    /// Runs `future` within the time that the host gives a peer.
    pub(super) async fn within_close_wait(
        &self,
        future: impl Future<Output = Result<(), SocketError>>,
    ) -> Result<(), SocketError> {
        match self.domain.timeout(CLOSE_WAIT, future).await {
            Ok(result) => result,
            Err(_) => Err(SocketError::ClientLeft),
        }
    }

    async fn until_ready<T>(
        &self,
        mut look: impl FnMut(&mut Inner, &mut Context<'_>) -> Poll<T>,
    ) -> T {
        self.wakes
            .until_ready(&self.waker, |cx| look(&mut self.inner.lock(), cx))
            .await
    }
}

impl Drop for Slot {
    /// The last resort, when neither a handler nor a host is left to end the socket.
    fn drop(&mut self) {
        let inner = self.inner.get_mut();
        match inner.end(Ended::ByHost) {
            State::Pending { answer, .. } => {
                let _ = answer.send(forbidden());
            }
            State::Open(mut link) => {
                link.start_close(Some(CloseFrame::new(close_code::GOING_AWAY, "")));
                if let Some(heir) = inner.heir.take() {
                    // Of no use to one that is gone with its runtime.
                    let _ = heir.send(link);
                }
            }
            State::Upgrading { .. } | State::Ended { .. } => {}
        }
    }
}

/// What a client gets whose upgrade nobody answered.
fn forbidden() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}
