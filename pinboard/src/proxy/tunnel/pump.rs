//! Both directions of a tunnel, and how one end of it follows from the other.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pinned_domain::Domain;
use tokio::io::{AsyncRead, AsyncWrite};

use super::frames::{self, Frames};
use super::leg::{Leg, LegEvent};

/// How long a client may take to close its side once it has been told that all is over.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long a worker may take to end a WebSocket whose client has gone without a word.
const WORKER_FAREWELL: Duration = Duration::from_secs(10);

/// Passes bytes both ways between a client and a worker until it is over.
///
/// The end of one side's bytes is passed on as such, so that protocols which end one direction first work. A
/// WebSocket does not do that: when its worker's connection ends without a close frame, the client gets one (1011) if a
/// frame may stand there, and in the middle of a frame the connection just ends; when its client is gone, the worker has a
/// moment to end as well.
pub(super) struct Pump<C, W, E> {
    client: C,
    worker: W,
    /// From the client to the worker.
    up: Leg,
    /// From the worker to the client.
    down: Leg,
    is_websocket: bool,
    /// Nothing more comes from the client.
    has_client_ended: bool,
    /// Ends when the tunnel has to be closed from here.
    ending: Option<E>,
    /// All is over when it ends.
    limit: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    domain: Domain,
}

impl<C, W, E> Pump<C, W, E> {
    pub(super) fn new(client: C, worker: W, is_websocket: bool, ending: E, domain: Domain) -> Self {
        let frames = || is_websocket.then(Frames::default);
        Self {
            client,
            worker,
            up: Leg::new(frames()),
            down: Leg::new(frames()),
            is_websocket,
            has_client_ended: false,
            ending: Some(ending),
            limit: None,
            domain,
        }
    }

    /// All is over after `limit`, unless it is so before.
    fn limit(&mut self, limit: Duration) {
        if self.limit.is_none() {
            self.limit = Some(Box::pin(self.domain.sleep(limit)));
        }
    }

    /// The worker is gone, or has nothing more to say.
    fn worker_has_ended(&mut self, is_broken: bool) {
        if self.is_websocket {
            let last = frames::close(1011, "the worker has gone");
            self.down.end(Some(last));
        } else {
            self.down.end(None);
        }
        if self.is_websocket || is_broken {
            self.up.discard();
            self.limit(FAREWELL);
        }
    }

    /// The client has nothing more to say.
    fn client_has_ended(&mut self) {
        self.up.end(None);
        if self.is_websocket {
            self.limit(WORKER_FAREWELL);
        }
    }

    /// It is closed from here: a server that stops.
    fn close(&mut self) {
        if self.is_websocket {
            self.down.close_with(frames::close(1012, "service restart"));
            self.up.close_with(frames::masked_close(1001, "going away"));
        } else {
            self.down.end(None);
            self.up.end(None);
        }
        self.limit(FAREWELL);
    }
}

impl<C, W, E> Future for Pump<C, W, E>
where
    C: AsyncRead + AsyncWrite + Unpin,
    W: AsyncRead + AsyncWrite + Unpin,
    E: Future<Output = ()> + Unpin,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if let Some(ending) = &mut this.ending
            && Pin::new(ending).poll(cx).is_ready()
        {
            this.ending = None;
            this.close();
        }
        // A decision about one direction may let the other go on.
        loop {
            let mut has_changed = false;
            match this.down.poll(cx, &mut this.worker, &mut this.client) {
                Poll::Pending => {}
                Poll::Ready(LegEvent::Shut) => {}
                Poll::Ready(LegEvent::SourceEnded) => {
                    this.worker_has_ended(false);
                    has_changed = true;
                }
                Poll::Ready(LegEvent::SourceFailed) => {
                    this.worker_has_ended(true);
                    has_changed = true;
                }
                // The client is gone.
                Poll::Ready(LegEvent::SinkFailed) => return Poll::Ready(()),
            }
            match this.up.poll(cx, &mut this.client, &mut this.worker) {
                Poll::Pending => {}
                // What it still sends is read, or the connection would be reset under what it has not read yet.
                Poll::Ready(LegEvent::Shut) if !this.has_client_ended => {
                    this.up.discard();
                    has_changed = true;
                }
                Poll::Ready(LegEvent::Shut) if this.down.is_shut() => return Poll::Ready(()),
                Poll::Ready(LegEvent::Shut) => {}
                Poll::Ready(LegEvent::SourceEnded) => {
                    this.has_client_ended = true;
                    this.client_has_ended();
                    has_changed = true;
                }
                Poll::Ready(LegEvent::SourceFailed) => return Poll::Ready(()),
                // What it has said before may still be on its way to the client.
                Poll::Ready(LegEvent::SinkFailed) => {
                    this.up.discard();
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
        match &mut this.limit {
            Some(limit) => limit.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}
