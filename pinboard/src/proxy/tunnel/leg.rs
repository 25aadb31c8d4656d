//! One direction of a tunnel.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::Frames;

/// How much is read at once, in bytes.
const SCRATCH: usize = 32 * 1024;

/// How many reads one direction takes before others get their turn.
const TURN: usize = 16;

thread_local! {
    /// What is read lies here only until it has been written, within one poll: a tunnel that is idle has no buffer.
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH].into_boxed_slice());
}

/// One direction of a tunnel: what has been read and not been written, and how far it has come.
#[derive(Debug)]
pub(super) struct Leg {
    /// What the sink did not take at once. Nothing more is read before it has: so one side slows down the other.
    pending: Bytes,
    is_unflushed: bool,
    course: Course,
    /// Where its frames are, if it has any.
    frames: Option<Frames>,
}

/// How far a direction has come.
#[derive(Debug)]
enum Course {
    /// What comes is passed on.
    Open,
    /// As soon as a frame may be added, it is this one, and the last.
    Closing(Bytes),
    /// Nothing more is read, and what there is goes out.
    Ending,
    /// The sink has been told that nothing more will come.
    Shut,
    /// The sink takes nothing more; what comes is thrown away.
    Discarding,
}

/// Why a direction is done with, or waits for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LegEvent {
    /// The source has no more. The sink is told once [`Leg::end`] is called.
    SourceEnded,
    /// The source broke.
    SourceFailed,
    /// The sink takes no more.
    SinkFailed,
    /// The sink has all there was and has been told.
    Shut,
}

impl Leg {
    pub(super) fn new(frames: Option<Frames>) -> Self {
        Self {
            pending: Bytes::new(),
            is_unflushed: false,
            course: Course::Open,
            frames,
        }
    }

    /// Passes on what there is, until there is something to decide. After [`LegEvent::Shut`] it says so again.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut (impl AsyncRead + Unpin),
        sink: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<LegEvent> {
        for _ in 0..TURN {
            if ready!(self.poll_pending(cx, sink)).is_err() {
                return Poll::Ready(LegEvent::SinkFailed);
            }
            match &mut self.course {
                Course::Open | Course::Discarding => {}
                Course::Closing(last) => {
                    if self.frames.as_ref().is_none_or(Frames::takes_another) {
                        self.pending = std::mem::take(last);
                        self.course = Course::Ending;
                        continue;
                    }
                }
                Course::Ending => {
                    let told = match ready!(self.poll_flush(cx, sink)) {
                        Ok(()) => ready!(Pin::new(&mut *sink).poll_shutdown(cx)),
                        failed => failed,
                    };
                    self.course = Course::Shut;
                    return Poll::Ready(match told {
                        Ok(()) => LegEvent::Shut,
                        Err(_) => LegEvent::SinkFailed,
                    });
                }
                Course::Shut => return Poll::Ready(LegEvent::Shut),
            }
            match self.poll_pass(cx, source, sink) {
                Poll::Ready(Ok(0)) => return Poll::Ready(LegEvent::SourceEnded),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(event)) => return Poll::Ready(event),
                Poll::Pending => {
                    return match ready!(self.poll_flush(cx, sink)) {
                        Ok(()) => Poll::Pending,
                        Err(_) => Poll::Ready(LegEvent::SinkFailed),
                    };
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once, and writes what was read as far as the sink takes it. How much was read.
    fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut (impl AsyncRead + Unpin),
        sink: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<Result<usize, LegEvent>> {
        READ.with_borrow_mut(|scratch| {
            let mut read = ReadBuf::new(scratch);
            ready!(Pin::new(source).poll_read(cx, &mut read))
                .map_err(|_| LegEvent::SourceFailed)?;
            let read = read.filled();
            let mut rest = match (&self.course, &mut self.frames) {
                (Course::Discarding, _) => &[],
                // What begins after the end of this one has to do without.
                (Course::Closing(_), Some(frames)) => &read[..frames.pass_frame(read)],
                (_, Some(frames)) => {
                    frames.pass(read);
                    read
                }
                (_, None) => read,
            };
            while !rest.is_empty() {
                match Pin::new(&mut *sink).poll_write(cx, rest) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(LegEvent::SinkFailed)),
                    Poll::Ready(Ok(written)) => {
                        self.is_unflushed = true;
                        rest = &rest[written..];
                    }
                    Poll::Pending => {
                        self.pending = Bytes::copy_from_slice(rest);
                        break;
                    }
                }
            }
            Poll::Ready(Ok(read.len()))
        })
    }

    fn poll_pending(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        while !self.pending.is_empty() {
            let written = ready!(Pin::new(&mut *sink).poll_write(cx, &self.pending))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.is_unflushed = true;
            self.pending.advance(written);
        }
        // Its memory as well.
        self.pending = Bytes::new();
        Poll::Ready(Ok(()))
    }

    fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        if self.is_unflushed {
            ready!(Pin::new(sink).poll_flush(cx))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Nothing more is read. The sink gets what there is and `last`, if that may stand there, and is told.
    pub(super) fn end(&mut self, last: Option<Vec<u8>>) {
        if matches!(self.course, Course::Discarding) {
            // There is nobody to tell.
            self.course = Course::Shut;
        }
        if !self.is_open() {
            return;
        }
        let may_add = self.frames.as_ref().is_some_and(Frames::takes_another);
        if let Some(last) = last
            && may_add
        {
            self.pending = if self.pending.is_empty() {
                last.into()
            } else {
                [&self.pending, &last[..]].concat().into()
            };
        }
        self.course = Course::Ending;
    }

    /// The next frame to begin is `last`, and the last one.
    pub(super) fn close_with(&mut self, last: Vec<u8>) {
        if self.is_open() {
            self.course = Course::Closing(last.into());
        }
    }

    /// The sink is gone: what comes is thrown away.
    pub(super) fn discard(&mut self) {
        self.pending = Bytes::new();
        self.is_unflushed = false;
        self.course = Course::Discarding;
    }

    fn is_open(&self) -> bool {
        matches!(self.course, Course::Open | Course::Closing(_))
    }

    pub(super) fn is_shut(&self) -> bool {
        matches!(self.course, Course::Shut)
    }
}
