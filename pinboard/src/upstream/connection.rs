//! A connection with what has been read of it.

use std::future::Future as _;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::AsyncReadExt as _;

use super::Stream;

/// How much a read has room for.
const ROOM: usize = 8 << 10;
/// The largest buffer that an idle connection keeps.
const MOST_KEPT: usize = 2 * ROOM;
/// How far that grows on a connection whose reads fill it.
const MOST_ROOM: usize = 64 << 10;

/// A connection with what has been read of it, and not yet been understood.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) buffer: BytesMut,
    room: usize,
    /// The largest the buffer has been.
    largest: usize,
}

impl Connection {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            room: ROOM,
            largest: 0,
        }
    }

    /// Reads what is there, behind what the buffer has already. `0` is the end of the stream.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.space() < self.room / 4 {
            // Takes the same memory again once nobody holds a slice of it any more.
            self.buffer.reserve(self.room);
            self.largest = self.largest.max(self.buffer.capacity());
        }
        let space = self.space();
        let read = ready!(pin!(self.stream.read_buf(&mut self.buffer)).poll(cx))?;
        if read == space && space >= self.room {
            self.room = (self.room * 2).min(MOST_ROOM);
        }
        Poll::Ready(Ok(read))
    }

    /// Whether something has come on an idle connection; its end and an error count.
    ///
    /// On TCP it makes no system call while the runtime has been told of nothing, and leaves no waker: whoever then waits has to
    /// read. TLS may hold bytes of its own, so it is polled.
    pub(super) fn has_come(&mut self, cx: &mut Context<'_>) -> bool {
        match &self.stream {
            Stream::Tcp(tcp) => !matches!(
                tcp.try_read_buf(&mut self.buffer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock
            ),
            Stream::Tls(_) | Stream::Other(_) => self.poll_fill(cx).is_ready(),
        }
    }

    fn space(&self) -> usize {
        self.buffer.capacity() - self.buffer.len()
    }

    /// Before the next request: the whole buffer again, if the slices of the last response are gone.
    pub(super) fn wake(&mut self) {
        if self.buffer.is_empty() && !self.buffer.try_reclaim(ROOM) {
            self.buffer = BytesMut::with_capacity(ROOM);
        }
    }

    /// After a response: a buffer that has grown is given up.
    pub(super) fn rest(&mut self) {
        self.room = ROOM;
        if self.largest > MOST_KEPT {
            self.buffer = BytesMut::new();
            self.largest = 0;
        }
    }
}
