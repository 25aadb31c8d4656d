//! An exchange with a worker that answers the given bytes, cut into reads as told.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::HeaderMap;
use http_body_util::{BodyExt as _, Empty};
use pinboard::upstream::{
    Backend, BackendOptions, Connector, Dial, ExchangeErrorKind, Framing, RequestHead, Stream,
};
use pinned_domain::Domain;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// All that can be seen of an exchange.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    NoHead(ExchangeErrorKind),
    Head {
        status: u16,
        headers: HeaderMap,
        data: Vec<u8>,
        trailers: Option<HeaderMap>,
        error: Option<io::ErrorKind>,
    },
}

/// What comes of a response of `bytes` that is read in parts of at most `part` bytes.
pub fn outcome(is_head: bool, bytes: &[u8], part: usize) -> Outcome {
    let parts = Parts {
        bytes: bytes.to_vec(),
        at: 0,
        part,
        is_paused: false,
    };
    let backend = Backend::with_connector(
        BackendOptions {
            url: "http://worker/".parse().expect("a URL"),
            addresses: vec![([10, 0, 0, 1], 80).into()],
            lanes: 1,
            domain: Domain::real_seeded(0),
        },
        Connector::new(Once(Mutex::new(Some(parts)))),
    );
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(exchange(&backend, is_head))
}

async fn exchange(backend: &Backend, is_head: bool) -> Outcome {
    let head = RequestHead {
        bytes: b"GET / HTTP/1.1\r\nhost: worker\r\n".to_vec(),
        framing: Framing::None,
        expect_continue: false,
        no_response_body: is_head,
        upgrade: None,
        accepts_trailers: false,
    };
    let mut reply = match backend.send(0, head, Empty::<Bytes>::new()).await {
        Ok(reply) => reply,
        Err(error) => return Outcome::NoHead(error.kind),
    };
    let (mut data, mut trailers, mut error) = (Vec::new(), None, None);
    while let Some(frame) = reply.body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(part)) => data.extend_from_slice(&part),
            Ok(Err(frame)) => trailers = frame.into_trailers().ok(),
            Err(broken) => {
                error = Some(broken.kind());
                break;
            }
        }
    }
    Outcome::Head {
        status: reply.status.as_u16(),
        headers: reply.headers,
        data,
        trailers,
        error,
    }
}

struct Once(Mutex<Option<Parts>>);

impl Dial for Once {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'static, io::Result<Stream>> {
        let parts = self.0.lock().expect("not poisoned").take();
        async { Ok(Stream::Other(Box::new(parts.expect("one connection")))) }.boxed()
    }
}

/// Reads that give one part each, with a pause before each.
struct Parts {
    bytes: Vec<u8>,
    at: usize,
    part: usize,
    is_paused: bool,
}

impl AsyncRead for Parts {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_paused = !self.is_paused;
        if self.is_paused {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let left = &self.bytes[self.at..];
        let length = left.len().min(self.part).min(buf.remaining());
        buf.put_slice(&left[..length]);
        self.at += length;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Parts {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
