//! The bytes of a client's connection, on their way to and from hyper.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt as _;
use pinned_domain::Domain;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::guard::{Guard, Refused};
use super::vitals::{Upgrade, Vitals};

/// What a client of HTTP/2 begins with (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long what a client still sends is read after the last answer. If it were not, the connection would be reset, and
/// the client might lose that answer.
const LINGER: Duration = Duration::from_secs(2);

/// What hyper is given after something that must not pass. It ends the head, so that hyper looks at it and refuses it.
const AFTER_REFUSAL: &[u8] = b"\r\n\r\n";

/// The bytes of a client's connection.
///
/// What is read is looked at before it is passed on (see [`Guard`]); a byte that must not pass becomes a NUL, which is
/// allowed nowhere in HTTP/1.1, so that hyper answers 400.
pub(super) struct ClientIo<S> {
    stream: S,
    start: Start,
    guard: Guard,
    /// What is still to be given after a refusal.
    refused: Option<&'static [u8]>,
    vitals: Arc<Vitals>,
    /// That a first head is awaited has been counted, and it has not come.
    awaits_first: bool,
    has_ended: bool,
    linger: Linger,
    domain: Domain,
}

/// What was read to find out what the client speaks, and has not been given to hyper.
struct Start {
    bytes: [u8; PREFACE.len()],
    from: u8,
    to: u8,
}

enum Linger {
    NotYet,
    Reading(Pin<Box<dyn Future<Output = ()> + Send>>),
    Done,
}

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

impl<S> ClientIo<S> {
    pub(super) fn new(stream: S, vitals: Arc<Vitals>, domain: Domain) -> Self {
        Self {
            stream,
            start: Start {
                bytes: [0; PREFACE.len()],
                from: 0,
                to: 0,
            },
            guard: Guard::new(),
            refused: None,
            vitals,
            awaits_first: true,
            has_ended: false,
            linger: Linger::NotYet,
            domain,
        }
    }

    /// Learns what became of a request for an upgrade.
    fn hear_upgrade(&mut self) {
        if self.guard.is_undecided() {
            match self.vitals.take_upgrade() {
                Upgrade::Undecided => {}
                Upgrade::Granted => self.guard.decide(true),
                Upgrade::Refused => self.guard.decide(false),
            }
        }
    }

    /// Looks at what has just been read into `read` from `from` on, and cuts it short where it must not pass.
    fn inspect(&mut self, read: &mut ReadBuf<'_>, mut from: usize) {
        loop {
            let bytes = &mut read.filled_mut()[from..];
            match self.guard.pass(bytes) {
                Ok(seen) => {
                    let mut edges = seen.edges;
                    if edges > 0 && std::mem::take(&mut self.awaits_first) {
                        edges -= 1;
                    }
                    if edges > 0 {
                        self.vitals.head_edges(edges);
                    }
                    let Some(early) = seen.early else {
                        return;
                    };
                    // Where the answer came before the end of the body, it is decided already.
                    self.hear_upgrade();
                    if self.guard.is_undecided() {
                        return self.vitals.note_early();
                    }
                    from += early;
                }
                Err(Refused { at }) => {
                    bytes[at] = 0;
                    read.set_filled(from + at + 1);
                    self.refused = Some(AFTER_REFUSAL);
                    return;
                }
            }
        }
    }
}

impl<S: 'static> ClientIo<S> {
    /// Whether the client has ended its side, although what it sent before has not been read: hyper reads nothing while it
    /// has more than it can pass on, so it would hold the request of a client that is long gone.
    fn has_left_unread(&self) -> bool {
        let stream: &dyn Any = &self.stream;
        stream.downcast_ref::<TcpStream>().is_some_and(|tcp| {
            matches!(
                tcp.ready(Interest::READABLE).now_or_never(),
                Some(Ok(ready)) if ready.is_read_closed()
            )
        })
    }
}

impl<S: AsyncRead + Unpin> ClientIo<S> {
    /// Finds out what the client speaks; `None` when it leaves without a word.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was read is kept.
    pub(super) async fn sniff(&mut self) -> io::Result<Option<Protocol>> {
        poll_fn(|cx| self.poll_sniff(cx)).await
    }

    fn poll_sniff(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Protocol>>> {
        loop {
            let start = &mut self.start;
            let known = usize::from(start.to);
            if start.bytes[..known] != PREFACE[..known] {
                return Poll::Ready(Ok(Some(Protocol::Http1)));
            }
            if known == PREFACE.len() {
                self.guard = Guard::free();
                self.vitals.heads_are_over();
                return Poll::Ready(Ok(Some(Protocol::Http2)));
            }
            let mut read = ReadBuf::new(&mut start.bytes[known..]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            // At most 24.
            let length = read.filled().len() as u8;
            if length == 0 {
                self.has_ended = true;
                // Whoever has sent something gets an answer.
                return Poll::Ready(Ok((known > 0).then_some(Protocol::Http1)));
            }
            start.to += length;
        }
    }

    fn poll_stream(
        &mut self,
        cx: &mut Context<'_>,
        read: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let start = &mut self.start;
        if start.from < start.to {
            let there = &start.bytes[usize::from(start.from)..usize::from(start.to)];
            let length = there.len().min(read.remaining());
            read.put_slice(&there[..length]);
            start.from += length as u8;
            return Poll::Ready(Ok(()));
        }
        if self.has_ended {
            return Poll::Ready(Ok(()));
        }
        let before = read.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, read))?;
        self.has_ended = read.filled().len() == before && read.remaining() > 0;
        Poll::Ready(Ok(()))
    }

    /// Reads what still comes, and throws it away, until the client has ended as well or it has taken long enough.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.linger {
                Linger::NotYet if self.has_ended || self.guard.is_free() => {
                    self.linger = Linger::Done;
                }
                Linger::NotYet => {
                    self.linger = Linger::Reading(Box::pin(self.domain.sleep(LINGER)));
                }
                Linger::Reading(limit) => {
                    let mut thrown_away = [0; 4096];
                    let mut read = ReadBuf::new(&mut thrown_away);
                    let is_over = match Pin::new(&mut self.stream).poll_read(cx, &mut read) {
                        Poll::Ready(Ok(())) => read.filled().is_empty(),
                        Poll::Ready(Err(_)) => true,
                        Poll::Pending => {
                            ready!(limit.as_mut().poll(cx));
                            true
                        }
                    };
                    // A client that never stops sending is not read for longer either.
                    if is_over || limit.as_mut().poll(cx).is_ready() {
                        self.linger = Linger::Done;
                    }
                }
                Linger::Done => return Poll::Ready(()),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientIo<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        read: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(rest) = this.refused {
            // Nothing that comes afterwards is read.
            let length = rest.len().min(read.remaining());
            read.put_slice(&rest[..length]);
            this.refused = Some(&rest[length..]);
            return Poll::Ready(Ok(()));
        }
        let from = read.filled().len();
        ready!(this.poll_stream(cx, read))?;
        this.hear_upgrade();
        if !this.guard.is_free() {
            this.inspect(read, from);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> AsyncWrite for ClientIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called whenever the connection is looked at, so also when its client is in doubt.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A tunnel's directions end one by one, and HTTP/2 is always read.
        if self.vitals.take_doubt() && !self.guard.is_free() && self.has_left_unread() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Tells the client that nothing more comes, and stays for a moment if it is still sending.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if matches!(this.linger, Linger::NotYet) {
            this.hear_upgrade();
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        this.poll_linger(cx).map(Ok)
    }
}
