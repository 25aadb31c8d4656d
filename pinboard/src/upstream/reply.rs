//! A response, as its body comes.

use std::fmt;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::Upgraded;
use super::connection::Connection;
use super::pool::Lane;
use super::request::{SendError, Sent, Upload};
use super::response::{Decoded, Decoder};

/// A response whose head has come.
#[derive(Debug)]
pub struct Reply {
    /// The status; 101 only when `upgraded` is there.
    pub status: StatusCode,
    /// The headers, as they came.
    pub headers: HeaderMap,
    /// When the whole head had come.
    pub came_at: Instant,
    /// The body. Polling it also sends what is left of the request's.
    pub body: ReplyBody,
    /// What the connection has become, after a 101. In a box, because every other reply would move the room for it.
    pub upgraded: Option<Box<Upgraded>>,
}

/// The body of a [`Reply`]. Dropping it before its end closes the connection.
///
/// It reads only when it is polled, and no more than fits one buffer (at most 64 KiB), so a slow reader slows the
/// worker down. Frames are slices of that buffer. While the request is still being sent, each poll goes on with that
/// too; where the response is over first, the rest of the request is not sent and the connection is closed.
///
/// A body that breaks off, or is not what its framing says, ends with an error and never as if it were complete.
pub struct ReplyBody {
    state: State,
}

enum State {
    Done,
    /// All of it was there with the head, and the connection is back already.
    Whole(Bytes),
    Streaming(Box<Streaming>),
    Failed,
}

struct Streaming {
    connection: Box<Connection>,
    decoder: Decoder,
    /// What was there with the head.
    first: Option<io::Result<Frame<Bytes>>>,
    upload: Option<Box<dyn Upload>>,
    /// Where the connection goes when all is over, if it may be used again.
    home: Option<Arc<Lane>>,
}

/// What a body is made of.
pub(super) struct Parts<'a> {
    pub(super) connection: Box<Connection>,
    pub(super) came_at: Instant,
    pub(super) decoder: Decoder,
    pub(super) upload: Option<Box<dyn Upload>>,
    pub(super) home: Option<&'a Arc<Lane>>,
}

// --- ReplyBody ---

impl ReplyBody {
    /// A body that is over.
    pub(super) fn empty() -> Self {
        Self { state: State::Done }
    }

    pub(super) fn new(parts: Parts<'_>) -> Self {
        let Parts {
            mut connection,
            came_at,
            mut decoder,
            upload,
            home,
        } = parts;
        let first = match decoder.decode(&mut connection.buffer) {
            Ok(Decoded::Data(data)) if decoder.is_done() && upload.is_none() => {
                settle(connection, home, Some(came_at));
                return Self {
                    state: State::Whole(data),
                };
            }
            Ok(Decoded::End) => {
                let home = home.filter(|_| upload.is_none());
                settle(connection, home, Some(came_at));
                return Self::empty();
            }
            Ok(Decoded::Data(data)) => Some(Ok(Frame::data(data))),
            Ok(Decoded::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Ok(Decoded::More) => None,
            Err(malformed) => Some(Err(malformed.into())),
        };
        Self {
            state: State::Streaming(Box::new(Streaming {
                connection,
                decoder,
                first,
                upload,
                home: home.cloned(),
            })),
        }
    }
}

/// Takes a connection home after a response. What has come beyond that answers nothing: the connection is closed then.
/// `now` is known where the clock has just been read.
fn settle(connection: Box<Connection>, home: Option<&Arc<Lane>>, now: Option<Instant>) {
    if let Some(lane) = home
        && connection.buffer.is_empty()
    {
        match now {
            Some(now) => lane.put_at(connection, now),
            None => lane.put(connection),
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = match &mut self.state {
            State::Done => return Poll::Ready(None),
            State::Whole(data) => {
                let data = mem::take(data);
                self.state = State::Done;
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            State::Streaming(streaming) => ready!(streaming.poll_next(cx)),
            State::Failed => Err(io::Error::other("this body broke off already")),
        };
        match frame {
            Ok(frame) => {
                self.settle_if_over(frame.is_none());
                Poll::Ready(frame.map(Ok))
            }
            Err(error) => {
                self.state = State::Failed;
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Done)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Done => SizeHint::with_exact(0),
            State::Whole(data) => SizeHint::with_exact(data.len() as u64),
            State::Streaming(streaming) => streaming.size_hint(),
            State::Failed => SizeHint::default(),
        }
    }
}

impl ReplyBody {
    /// With the last part rather than after it: whoever knows the length need not ask for more.
    fn settle_if_over(&mut self, is_over: bool) {
        if let State::Streaming(streaming) = &self.state
            && (is_over || streaming.decoder.is_done())
            && let State::Streaming(streaming) = mem::replace(&mut self.state, State::Done)
        {
            let is_sent = streaming.upload.is_none();
            settle(
                streaming.connection,
                streaming.home.as_ref().filter(|_| is_sent),
                None,
            );
        }
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Done => "ReplyBody::Done",
            State::Whole(_) => "ReplyBody::Whole",
            State::Streaming(_) => "ReplyBody::Streaming",
            State::Failed => "ReplyBody::Failed",
        })
    }
}

// --- Streaming ---

impl Streaming {
    /// The next part; `None` at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Frame<Bytes>>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(first.map(Some));
        }
        loop {
            let has_sent = self.send(cx)?;
            let frame = match self.decoder.decode(&mut self.connection.buffer)? {
                Decoded::Data(data) => Some(Frame::data(data)),
                Decoded::Trailers(trailers) => Some(Frame::trailers(trailers)),
                Decoded::End => None,
                Decoded::More => match self.connection.poll_fill(cx) {
                    Poll::Ready(Ok(0)) if self.decoder.ends_with_connection() => None,
                    Poll::Ready(Ok(0)) => Err(io::ErrorKind::UnexpectedEof)?,
                    Poll::Ready(Ok(_)) => continue,
                    Poll::Ready(Err(error)) => Err(error)?,
                    Poll::Pending if has_sent => continue,
                    Poll::Pending => return Poll::Pending,
                },
            };
            return Poll::Ready(Ok(frame));
        }
    }

    /// Goes on with the request, and says whether there was anything to do.
    fn send(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let Some(upload) = &mut self.upload else {
            return Ok(false);
        };
        match upload.poll_send(cx, &mut self.connection.stream) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(Sent::Some)) => {}
            Poll::Ready(Ok(Sent::All)) => self.upload = None,
            Poll::Ready(Err(SendError::Write(_))) => {
                // The response may go on all the same; if not, reading says so.
                self.upload = None;
                self.home = None;
            }
            Poll::Ready(Err(SendError::Body(error))) => return Err(io::Error::other(error)),
        }
        Ok(true)
    }

    fn size_hint(&self) -> SizeHint {
        let first = match &self.first {
            Some(Ok(frame)) => frame.data_ref().map_or(0, |data| data.len() as u64),
            _ => 0,
        };
        match self.decoder.left() {
            Some(left) => SizeHint::with_exact(left + first),
            None => {
                let mut hint = SizeHint::new();
                hint.set_lower(first);
                hint
            }
        }
    }
}
