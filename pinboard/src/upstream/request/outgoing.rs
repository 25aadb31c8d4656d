//! A request on its way out.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use pinned_domain::Domain;
use tokio::io::AsyncWrite as _;

use super::queue::Queue;
use super::trailers;
use crate::upstream::{Framing, RequestHead, Stream};

/// How long a body waits for a `100 Continue`. RFC 9110 (10.1.1) has it sent after a while, because a server may not
/// know of expectations; those that do answer at once.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// A request on its way out: the head, then the body as fast as its sender has it and the worker takes it.
pub(in crate::upstream) struct Outgoing<B> {
    queue: Queue,
    stage: Stage,
    body: B,
    /// `Length` is what is left to come.
    framing: Framing,
    /// Whether the stream may hold back some of what it took.
    is_unflushed: bool,
    may_have_reached: bool,
}

enum Stage {
    /// The head goes out, and then the body waits.
    Waiting(Waiting),
    /// The body goes out.
    Body,
    /// All that there is lies in the queue.
    Last,
}

struct Waiting {
    domain: Domain,
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// How far one step has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Sent {
    /// There may be more to do at once.
    Some,
    /// The whole request is sent.
    All,
}

/// Why a request is not sent to its end.
#[derive(Debug)]
pub(in crate::upstream) enum SendError {
    /// The worker does not take it; it may have answered all the same.
    Write(io::Error),
    /// The body broke off, or does not have the length that was announced.
    Body(Box<dyn std::error::Error + Send + Sync>),
}

/// What is left of a request, whatever its body is.
pub(in crate::upstream) trait Upload: Send {
    /// Does one thing: a write, or a flush. So a response is looked for between any two of them, however fast the body
    /// comes.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
    ) -> Poll<Result<Sent, SendError>>;
}

impl<B> Outgoing<B> {
    pub(in crate::upstream) fn new(mut head: RequestHead, body: B, domain: &Domain) -> Self {
        let queue = Queue::new(head.finish());
        let stage = match head.framing {
            Framing::None | Framing::Length(0) => Stage::Last,
            _ if head.expect_continue => Stage::Waiting(Waiting {
                domain: domain.clone(),
                timer: None,
            }),
            _ => Stage::Body,
        };
        Self {
            queue,
            stage,
            body,
            framing: head.framing,
            is_unflushed: false,
            may_have_reached: false,
        }
    }

    /// Whether a byte of it may have reached the worker.
    pub(in crate::upstream) fn may_have_reached(&self) -> bool {
        self.may_have_reached
    }

    /// Whether nothing of the body was sent, because nobody has asked for it yet.
    pub(in crate::upstream) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting(_))
    }

    /// The worker wants the body.
    pub(in crate::upstream) fn go_on(&mut self) {
        if self.is_waiting() {
            self.stage = Stage::Body;
        }
    }
}

impl<B> Outgoing<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Takes what the body has ready into the queue.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => frame.transpose(),
            // All of it has come; what was asked for is only whether there is too much.
            Poll::Pending if self.framing == Framing::Length(0) => Ok(None),
            Poll::Pending => return Poll::Pending,
        };
        let frame = frame.map_err(|error| SendError::Body(error.into()))?;
        Poll::Ready(match frame.map(http_body::Frame::into_data) {
            Some(Ok(data)) => self.push(data),
            Some(Err(frame)) => self.push_end(frame.into_trailers().unwrap_or_default()),
            None => self.push_end(HeaderMap::new()),
        })
    }

    fn push(&mut self, data: Bytes) -> Result<(), SendError> {
        if data.is_empty() {
            // An empty chunk would be the last one.
            return Ok(());
        }
        let is_last = self.body.is_end_stream();
        match &mut self.framing {
            Framing::None => {}
            Framing::Length(left) => {
                *left = left
                    .checked_sub(data.len() as u64)
                    .ok_or_else(|| SendError::Body("the body is longer than announced".into()))?;
                if *left == 0 && is_last {
                    self.stage = Stage::Last;
                }
                self.queue.push(data);
            }
            Framing::Chunked => {
                if is_last {
                    self.stage = Stage::Last;
                }
                self.queue.push_chunk(data, is_last);
            }
        }
        Ok(())
    }

    fn push_end(&mut self, trailers: HeaderMap) -> Result<(), SendError> {
        match self.framing {
            Framing::None | Framing::Length(0) => {}
            Framing::Length(_) => {
                return Err(SendError::Body("the body is shorter than announced".into()));
            }
            Framing::Chunked => self.queue.push_end(|to| trailers::write(&trailers, to)),
        }
        self.stage = Stage::Last;
        Ok(())
    }
}

impl<B> Upload for Outgoing<B>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
    ) -> Poll<Result<Sent, SendError>> {
        // Before what is queued is written, so that the start of a body goes out with the head, and data with its size.
        let mut is_body_pending = false;
        if matches!(self.stage, Stage::Body) && self.queue.takes_data() {
            is_body_pending = self.poll_body(cx)?.is_pending();
        }
        if !self.queue.is_empty() {
            self.may_have_reached |= stream.writes_by_parts();
            ready!(self.queue.poll_write(cx, stream)).map_err(SendError::Write)?;
            self.may_have_reached = true;
            self.is_unflushed = true;
            if self.queue.is_empty() && matches!(self.stage, Stage::Last) {
                // Most requests end here, and TCP has nothing to flush.
                return self.poll_flush(cx, stream).map_ok(|()| Sent::All);
            }
            return Poll::Ready(Ok(Sent::Some));
        }
        ready!(self.poll_flush(cx, stream))?;
        match &mut self.stage {
            Stage::Last => return Poll::Ready(Ok(Sent::All)),
            Stage::Body if is_body_pending => return Poll::Pending,
            Stage::Body => {}
            Stage::Waiting(waiting) => {
                let domain = &waiting.domain;
                let timer = waiting
                    .timer
                    .get_or_insert_with(|| Box::pin(domain.sleep(CONTINUE_TIMEOUT)));
                ready!(timer.as_mut().poll(cx));
                self.stage = Stage::Body;
            }
        }
        Poll::Ready(Ok(Sent::Some))
    }
}

impl<B> Outgoing<B> {
    fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
    ) -> Poll<Result<(), SendError>> {
        if self.is_unflushed {
            ready!(Pin::new(stream).poll_flush(cx)).map_err(SendError::Write)?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}
