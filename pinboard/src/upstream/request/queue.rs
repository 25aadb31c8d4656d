//! What is to be written next.

use std::io::{self, IoSlice, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::AsyncWrite as _;

use crate::upstream::Stream;

/// Bytes of ours, then data of the body, then bytes of ours again; all in one write where the stream can.
#[derive(Debug)]
pub(super) struct Queue {
    /// The head, the size of a chunk, trailers. Used again once it is written.
    before: Vec<u8>,
    /// Up to where `before` is written.
    at: usize,
    data: Bytes,
    after: &'static [u8],
}

impl Queue {
    pub(super) fn new(before: Vec<u8>) -> Self {
        Self {
            before,
            at: 0,
            data: Bytes::new(),
            after: b"",
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.takes_data()
    }

    /// Whether there is no data in it: only then may more be put in.
    pub(super) fn takes_data(&self) -> bool {
        self.data.is_empty() && self.after.is_empty()
    }

    pub(super) fn push(&mut self, data: Bytes) {
        debug_assert!(self.takes_data());
        self.data = data;
    }

    pub(super) fn push_chunk(&mut self, data: Bytes, is_last: bool) {
        debug_assert!(self.takes_data());
        // A `Vec` takes everything.
        let _ = write!(self.before, "{:x}\r\n", data.len());
        self.data = data;
        self.after = if is_last { b"\r\n0\r\n\r\n" } else { b"\r\n" };
    }

    /// The end of the chunks, with the lines of the trailers.
    pub(super) fn push_end(&mut self, trailers: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.takes_data());
        self.before.extend_from_slice(b"0\r\n");
        trailers(&mut self.before);
        self.before.extend_from_slice(b"\r\n");
    }

    /// Writes as much as one write takes, and says how much that was. An error means that it took nothing.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(stream);
        let before = &self.before[self.at..];
        let written = if self.takes_data() {
            ready!(stream.poll_write(cx, before))?
        } else {
            let parts = [before, &self.data, self.after].map(IoSlice::new);
            ready!(stream.poll_write_vectored(cx, &parts))?
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.advance(written);
        Poll::Ready(Ok(written))
    }

    fn advance(&mut self, written: usize) {
        let of_before = written.min(self.before.len() - self.at);
        self.at += of_before;
        if self.at == self.before.len() {
            self.before.clear();
            self.at = 0;
        }
        let rest = written - of_before;
        let of_data = rest.min(self.data.len());
        self.data.advance(of_data);
        if self.data.is_empty() {
            // Not even an empty slice holds on to the memory of a frame.
            self.data = Bytes::new();
        }
        self.after = &self.after[rest - of_data..];
    }
}
