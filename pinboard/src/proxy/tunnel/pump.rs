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

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::sync::oneshot;

    use super::super::carry;
    use super::*;

    /// Both far ends of a tunnel, and what closes it from within.
    struct Ends {
        client: DuplexStream,
        worker: DuplexStream,
        close: oneshot::Sender<()>,
    }

    fn tunnel(is_websocket: bool) -> (Ends, impl Future<Output = ()> + Unpin) {
        let (client, near_client) = duplex(64);
        let (worker, near_worker) = duplex(64);
        let (close, closed) = oneshot::channel();
        let ending = closed.map(drop);
        let domain = Domain::real();
        let carrying = carry(near_client, near_worker, is_websocket, ending, domain);
        let ends = Ends {
            client,
            worker,
            close,
        };
        (ends, Box::pin(carrying))
    }

    async fn read(stream: &mut DuplexStream, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).await.expect("more");
        bytes
    }

    async fn rest(stream: &mut DuplexStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("a clean end");
        bytes
    }

    const HALF: [u8; 4] = [0x82, 4, b'h', b'a'];

    #[tokio::test(start_paused = true)]
    async fn a_close_frame_waits_for_the_end_of_the_frame_before_it() {
        let (mut ends, mut carrying) = tunnel(true);
        ends.worker.write_all(&HALF).await.expect("open");
        assert!((&mut carrying).now_or_never().is_none());
        ends.close.send(()).expect("wanted");
        assert!((&mut carrying).now_or_never().is_none());
        assert_eq!(read(&mut ends.client, 4).await, HALF);
        ends.worker.write_all(b"lf").await.expect("open");
        // The rest of another message has to wait for another connection.
        ends.worker.write_all(&[0x82, 1, b'x']).await.expect("open");
        let (client, worker) = (&mut ends.client, &mut ends.worker);
        let reading = async {
            let last = rest(client).await;
            assert_eq!(last[..4], [b'l', b'f', 0x88, 17]);
            assert_eq!(last[4..6], 1012_u16.to_be_bytes());
            assert_eq!(last[6..], b"service restart"[..]);
            let masked = rest(worker).await;
            assert_eq!(masked[..2], [0x88, 0x80 | 12]);
            client.shutdown().await.expect("open");
        };
        tokio::join!(&mut carrying, reading);
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_never_ends_is_not_waited_for_for_ever() {
        let began = Domain::real().monotonic();
        let (mut ends, mut carrying) = tunnel(true);
        ends.worker.write_all(&HALF).await.expect("open");
        assert!((&mut carrying).now_or_never().is_none());
        ends.close.send(()).expect("wanted");
        carrying.await;
        assert_eq!(Domain::real().monotonic() - began, FAREWELL);
        assert_eq!(
            rest(&mut ends.client).await,
            HALF,
            "and no frame in its middle"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_outlives_the_client_of_a_websocket_has_a_moment() {
        let began = Domain::real().monotonic();
        let (ends, carrying) = tunnel(true);
        drop(ends.client);
        carrying.await;
        assert_eq!(Domain::real().monotonic() - began, WORKER_FAREWELL);
        drop(ends.worker);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stays_after_its_worker_has_a_moment() {
        let began = Domain::real().monotonic();
        let (mut ends, mut carrying) = tunnel(true);
        drop(ends.worker);
        // It reads its close frame, and goes on talking.
        let talking = async {
            assert_eq!(read(&mut ends.client, 4).await[..2], [0x88, 21]);
            while ends
                .client
                .write_all(&[0x82, 0x80, 0, 0, 0, 0])
                .await
                .is_ok()
            {
                Domain::real().sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            () = &mut carrying => {}
            () = talking => {}
        }
        assert_eq!(Domain::real().monotonic() - began, FAREWELL);
    }

    #[tokio::test(start_paused = true)]
    async fn other_protocols_have_ends_of_their_own() {
        let (mut ends, mut carrying) = tunnel(false);
        ends.worker.write_all(b"bye").await.expect("open");
        ends.worker.shutdown().await.expect("open");
        let talking = async {
            assert_eq!(rest(&mut ends.client).await, b"bye");
            for _ in 0..100 {
                // For as long as it likes.
                Domain::real().sleep(Duration::from_secs(60)).await;
                ends.client.write_all(b"still here").await.expect("open");
                assert_eq!(read(&mut ends.worker, 10).await, b"still here");
            }
            ends.client.shutdown().await.expect("open");
            assert_eq!(rest(&mut ends.worker).await, b"");
        };
        tokio::join!(&mut carrying, talking);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_read_that_the_other_side_does_not_take() {
        let (mut ends, mut carrying) = tunnel(false);
        let writing = async {
            // Two pipes of 64 bytes each, and what was read at once.
            for _ in 0..64 {
                ends.worker.write_all(&[7; 64]).await.expect("open");
            }
        };
        tokio::select! {
            biased;
            () = writing => panic!("all of it was taken"),
            () = &mut carrying => panic!("it is open"),
            () = Domain::real().sleep(Duration::from_secs(1)) => {}
        }
        let sum = async {
            let mut all = 0;
            while all < 64 * 3 {
                all += ends.client.read(&mut [0; 64]).await.expect("open");
            }
            pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = sum => {}
            () = &mut carrying => panic!("it is open"),
            () = Domain::real().sleep(Duration::from_secs(1)) => {}
        }
    }
}
