//! Bodies of answers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};

/// The body of an answer of a worker.
pub type WorkerBody = UnsyncBoxBody<Bytes, io::Error>;

/// A body that is there at once.
pub fn full(body: impl Into<Bytes>) -> WorkerBody {
    Full::new(body.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// No body.
pub(super) fn empty() -> WorkerBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body that ends early once its instance has let go, and keeps something until it has ended.
pub(super) struct Stream<K> {
    body: WorkerBody,
    /// Ends once the instance has let go.
    cut: Option<BoxFuture<'static, ()>>,
    _keeps: K,
}

impl<K> Stream<K> {
    pub(super) fn new(body: WorkerBody, cut: BoxFuture<'static, ()>, keeps: K) -> Self {
        Self {
            body,
            cut: Some(cut),
            _keeps: keeps,
        }
    }
}

impl<K: Unpin> Body for Stream<K> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        match this.cut.as_mut().map(|cut| cut.poll_unpin(cx)) {
            Some(Poll::Pending) => Pin::new(&mut this.body).poll_frame(cx),
            Some(Poll::Ready(())) | None => {
                this.cut = None;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.cut.is_none() || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
