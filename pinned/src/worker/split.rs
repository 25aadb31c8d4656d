//! Large bodies, a piece at a time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};

/// The largest piece that is handed to a connection, which copies it.
const PIECE: usize = 32 * 1024;

/// Splits a body that is not known to be small, so that a connection holds a copy of one piece and not of the whole.
pub(super) fn split(response: Response) -> Response {
    let is_small = response
        .body()
        .size_hint()
        .exact()
        .is_some_and(|length| length <= PIECE as u64);
    if is_small {
        return response;
    }
    response.map(|body| {
        Body::new(Split {
            body,
            rest: Bytes::new(),
        })
    })
}

struct Split {
    body: Body,
    /// What is left of a frame that was larger than a piece.
    rest: Bytes,
}

impl HttpBody for Split {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        let piece = this.rest.split_to(PIECE.min(this.rest.len()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    #[test]
    fn a_small_body_is_left_alone_and_a_large_one_arrives_whole_in_pieces() {
        let large: Bytes = (0..PIECE * 2 + 7).map(|byte| byte as u8).collect();
        let mut body = split(Response::new(Body::from(large.clone()))).into_body();
        let mut seen = Vec::new();
        while let Some(frame) = body.frame().now_or_never().expect("no wait") {
            let data = frame.expect("no error").into_data().expect("no trailers");
            assert!(data.len() <= PIECE);
            seen.extend_from_slice(&data);
            assert_eq!(
                body.size_hint().exact(),
                Some((large.len() - seen.len()) as u64)
            );
        }
        assert!(body.is_end_stream());
        assert_eq!(seen, large);
    }
}
