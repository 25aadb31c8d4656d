//! The body of a request, which may have to be sent again (P5.9).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};
use parking_lot::Mutex;

/// How much of a body is kept for sending it again, in bytes.
const KEPT: usize = 64 * 1024;

/// In how many pieces: more are put together, so that many small ones cost little.
const PIECES: usize = 256;

/// The body of one request, for as many exchanges as it takes.
pub(super) enum Replay<B> {
    /// There is none.
    Empty,
    /// What there is of it.
    Stream(Arc<Mutex<Source<B>>>),
}

/// The body as one exchange sends it.
pub(super) struct Upload<B> {
    source: Option<Arc<Mutex<Source<B>>>>,
}

/// A body from a client, and what has come of it.
pub(super) struct Source<B> {
    incoming: B,
    kept: Option<Kept>,
    /// It will not be sent again.
    is_settled: bool,
}

/// All that has come so far; there is none when that is too much, or nobody will ask for it again.
#[derive(Default)]
struct Kept {
    pieces: Vec<Bytes>,
    bytes: usize,
    trailers: Option<HeaderMap>,
    /// How many pieces, and then trailers, the exchange that goes on has sent.
    sent: usize,
}

impl<B: Body<Data = Bytes> + Unpin> Replay<B> {
    /// Takes the body of a request.
    pub(super) fn new(incoming: B) -> Self {
        if incoming.is_end_stream() {
            return Self::Empty;
        }
        Self::Stream(Arc::new(Mutex::new(Source {
            incoming,
            kept: Some(Kept::default()),
            is_settled: false,
        })))
    }

    /// The body, from its start. The one before, if any, is no longer polled.
    pub(super) fn upload(&self) -> Upload<B> {
        let source = match self {
            Self::Empty => None,
            Self::Stream(source) => {
                if let Some(kept) = &mut source.lock().kept {
                    kept.sent = 0;
                }
                Some(Arc::clone(source))
            }
        };
        Upload { source }
    }

    /// Whether it can be sent again.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Stream(source) => source.lock().kept.is_some(),
        }
    }

    /// It will not be sent again: what is kept is given up as soon as it has been sent.
    pub(super) fn settle(self) {
        if let Self::Stream(source) = self {
            let mut source = source.lock();
            source.is_settled = true;
            source.tidy();
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Source<B> {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(frame) = self.kept.as_mut().and_then(Kept::next) {
            self.tidy();
            return Poll::Ready(Some(Ok(frame)));
        }
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        if let (Some(Ok(frame)), Some(kept)) = (&frame, &mut self.kept)
            && !kept.add(frame)
        {
            self.kept = None;
        }
        self.tidy();
        Poll::Ready(frame)
    }

    /// Gives up what nobody will ask for.
    fn tidy(&mut self) {
        if self.is_settled && self.kept.as_ref().is_some_and(Kept::is_sent) {
            self.kept = None;
        }
    }

    fn is_end_stream(&self) -> bool {
        self.kept.as_ref().is_none_or(Kept::is_sent) && self.incoming.is_end_stream()
    }
}

impl Kept {
    /// What has not been sent yet.
    fn next(&mut self) -> Option<Frame<Bytes>> {
        let frame = match self.pieces.get(self.sent) {
            Some(piece) => Frame::data(piece.clone()),
            None if self.sent > self.pieces.len() => return None,
            None => Frame::trailers(self.trailers.clone()?),
        };
        self.sent += 1;
        Some(frame)
    }

    fn is_sent(&self) -> bool {
        self.sent >= self.pieces.len() + usize::from(self.trailers.is_some())
    }

    /// Keeps what is being sent just now; false when that is too much.
    fn add(&mut self, frame: &Frame<Bytes>) -> bool {
        if let Some(data) = frame.data_ref() {
            self.bytes += data.len();
            if self.bytes > KEPT {
                return false;
            }
            if self.pieces.len() == PIECES {
                let mut whole = BytesMut::with_capacity(self.bytes);
                for piece in self.pieces.drain(..) {
                    whole.extend_from_slice(&piece);
                }
                self.pieces.push(whole.freeze());
            }
            self.pieces.push(data.clone());
            self.sent = self.pieces.len();
        } else if let Some(trailers) = frame.trailers_ref() {
            self.trailers = Some(trailers.clone());
            self.sent = self.pieces.len() + 1;
        }
        true
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Upload<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &self.source {
            None => Poll::Ready(None),
            Some(source) => source.lock().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            None => true,
            Some(source) => source.lock().is_end_stream(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    /// Gives its frames one by one, and then its end.
    struct Script(VecDeque<Frame<Bytes>>);

    impl Body for Script {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(Ok))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_empty()
        }
    }

    fn pieces(lengths: impl IntoIterator<Item = usize>) -> Script {
        let piece = |length| Frame::data(Bytes::from(vec![b'x'; length]));
        Script(lengths.into_iter().map(piece).collect())
    }

    fn read(upload: &mut Upload<Script>) -> Option<Frame<Bytes>> {
        let frame = upload.frame().now_or_never().expect("never waits");
        frame.map(|frame| frame.unwrap_or_else(|error| match error {}))
    }

    fn length(upload: &mut Upload<Script>) -> usize {
        let mut bytes = 0;
        while let Some(frame) = read(upload) {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
        assert!(upload.is_end_stream());
        bytes
    }

    #[test]
    fn a_short_body_is_sent_again_from_its_start_wherever_the_first_sending_broke_off() {
        // P5.9
        for sent_before in 0..=4 {
            let mut script = pieces([3, 4, 5]);
            let trailers = HeaderMap::from_iter([(http::header::ETAG, "x".parse().unwrap())]);
            script.0.push_back(Frame::trailers(trailers.clone()));
            let replay = Replay::new(script);
            let mut first = replay.upload();
            for _ in 0..sent_before {
                assert!(read(&mut first).is_some());
            }
            drop(first);
            assert!(replay.is_whole());
            let mut second = replay.upload();
            let lengths: Vec<_> = std::iter::from_fn(|| read(&mut second)).collect();
            let data = |at: usize| lengths[at].data_ref().map(Bytes::len);
            assert_eq!((data(0), data(1), data(2)), (Some(3), Some(4), Some(5)));
            assert_eq!(lengths[3].trailers_ref(), Some(&trailers));
            assert_eq!(lengths.len(), 4);
        }
    }

    #[test]
    fn a_body_of_64_kib_is_kept_and_a_longer_one_is_not() {
        // P5.9
        let replay = Replay::new(pieces([KEPT - 1, 1]));
        assert_eq!(length(&mut replay.upload()), KEPT);
        assert!(replay.is_whole());
        assert_eq!(length(&mut replay.upload()), KEPT);

        let replay = Replay::new(pieces([KEPT, 1, 7]));
        let mut upload = replay.upload();
        assert_eq!(length(&mut upload), KEPT + 8);
        assert!(!replay.is_whole());
    }

    #[test]
    fn many_small_pieces_are_kept_as_a_few() {
        let replay = Replay::new(pieces(std::iter::repeat_n(2, 10_000)));
        assert_eq!(length(&mut replay.upload()), 20_000);
        let Replay::Stream(source) = &replay else {
            panic!("there is a body");
        };
        assert!(source.lock().kept.as_ref().unwrap().pieces.len() <= PIECES);
        let mut again = replay.upload();
        assert_eq!(length(&mut again), 20_000);
    }

    #[test]
    fn nothing_is_kept_once_the_answer_is_there_and_all_of_it_is_sent() {
        let replay = Replay::new(pieces([3, 4, 5]));
        drop(replay.upload().frame().now_or_never());
        let mut second = replay.upload();
        replay.settle();
        let source = Arc::clone(second.source.as_ref().unwrap());
        assert!(
            source.lock().kept.is_some(),
            "one piece is to be sent again"
        );
        assert_eq!(length(&mut second), 12);
        assert!(source.lock().kept.is_none());

        let replay = Replay::new(pieces([3]));
        let mut upload = replay.upload();
        assert_eq!(length(&mut upload), 3);
        replay.settle();
        assert!(upload.source.as_ref().unwrap().lock().kept.is_none());
    }
}
