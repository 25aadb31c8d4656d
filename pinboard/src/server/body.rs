//! The body of whatever is answered.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::vitals::Work;
use crate::proxy::AnswerBody;

/// The body of whatever is answered. The request counts as open until it is dropped.
pub(super) struct ServedBody {
    kind: Kind,
    _work: Option<Work>,
}

enum Kind {
    Proxied(AnswerBody),
    Routed(axum::body::Body),
}

impl ServedBody {
    pub(super) fn proxied(body: AnswerBody, work: Option<Work>) -> Self {
        Self {
            kind: Kind::Proxied(body),
            _work: work,
        }
    }

    pub(super) fn routed(body: axum::body::Body, work: Work) -> Self {
        Self {
            kind: Kind::Routed(body),
            _work: Some(work),
        }
    }
}

impl Body for ServedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.get_mut().kind {
            Kind::Proxied(body) => Pin::new(body).poll_frame(cx),
            Kind::Routed(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(io::Error::other))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Proxied(body) => body.is_end_stream(),
            Kind::Routed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Proxied(body) => body.size_hint(),
            Kind::Routed(body) => body.size_hint(),
        }
    }
}
