//! Streaming bodies: stream work from the handler's return until the body is finished, dropped or ended (H6.4).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;

use super::scope::Scope;
use super::seam::{OpenStream, Seam, Turn, Work};

/// Ends a handler's work with its answer, whose body goes on as stream work.
pub(crate) fn track(seam: &Seam, work: Work, turn: Option<Turn>, response: Response) -> Response {
    response.map(|body| {
        let source = Arc::new(Source::new(body));
        let key = seam.finish_into_stream(work, turn, Arc::clone(&source) as _);
        match key {
            Some(key) => Body::new(TrackedBody {
                source,
                scope: Scope::outliving(Arc::clone(seam)),
                open: Some((Arc::clone(seam), key)),
            }),
            None => {
                source.end();
                Body::empty()
            }
        }
    })
}

/// Where the body stands. Shared with the host, which ends it although a stalled client reads no more.
struct Source(Mutex<State>);

struct State {
    body: Option<Body>,
    reader: Option<Waker>,
}

impl Source {
    fn new(body: Body) -> Self {
        Self(Mutex::new(State {
            body: Some(body),
            reader: None,
        }))
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut state = self.0.lock();
        let Some(body) = state.body.as_mut() else {
            return Poll::Ready(None);
        };
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx)))
            .unwrap_or_else(|_| Poll::Ready(Some(Err(axum::Error::new(StreamPanicked)))));
        if polled.is_pending() {
            // The producer keeps a waker of its own; this one is for `end`.
            match &mut state.reader {
                Some(reader) => reader.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.0.lock();
        state.body.as_ref().map_or_else(
            || SizeHint::with_exact(0),
            |body| {
                // Only the lower bound holds: the host may end the body early.
                let mut hint = SizeHint::new();
                hint.set_lower(0);
                if let Some(upper) = HttpBody::size_hint(body).upper() {
                    hint.set_upper(upper);
                }
                hint
            },
        )
    }
}

impl OpenStream for Source {
    fn end(&self) {
        let (body, reader) = {
            let mut state = self.0.lock();
            (state.body.take(), state.reader.take())
        };
        // The producer's cleanup is user code: it runs outside the lock, and its panic stays here (H6.3).
        if catch_unwind(AssertUnwindSafe(|| drop(body))).is_err() {
            metrics::counter!("pinned_callback_failures_total", "hook" => "stream_aclose")
                .increment(1);
            tracing::error!(target: "pinned::host", "the cleanup of a streaming body panicked");
        }
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the stream's producer panicked")]
struct StreamPanicked;

/// The client's end of a tracked body.
struct TrackedBody {
    source: Arc<Source>,
    scope: Scope,
    open: Option<(Seam, u64)>,
}

impl TrackedBody {
    fn finished(&mut self) {
        if let Some((seam, key)) = self.open.take() {
            self.source.end();
            seam.stream_ended(key);
        }
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.get_mut();
        let polled = this.scope.enter(|| this.source.poll(cx));
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(_))) => {
                if let Some((seam, _)) = &this.open {
                    seam.stream_progressed();
                }
            }
            Poll::Ready(Some(Err(error))) => {
                if let Some((seam, _)) = &this.open
                    && std::error::Error::source(error)
                        .is_some_and(|source| source.is::<StreamPanicked>())
                {
                    Arc::clone(seam).abort_after_panic("a streaming body");
                }
                this.finished();
            }
            Poll::Ready(None) => this.finished(),
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        self.source.size_hint()
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.finished();
    }
}
