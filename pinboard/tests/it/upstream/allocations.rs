//! What an exchange costs: memory, and writes.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pinboard::upstream::{Backend, Connector, Dial, Framing, RequestHead, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Runtime;

use super::rig::{data, full, get, none, options, request};

const WHOLE: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    server: worker\r\ncontent-length: 5\r\n\r\nhello";
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";

/// Answers each request at once, part by part, and takes no memory for it.
#[derive(Clone)]
struct Canned {
    response: &'static [&'static [u8]],
    writes: Arc<AtomicUsize>,
}

struct CannedStream {
    canned: Canned,
    /// What is left to read.
    parts: &'static [&'static [u8]],
}

impl Dial for Canned {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'static, io::Result<Stream>> {
        let stream = CannedStream {
            canned: self.clone(),
            parts: &[],
        };
        async { Ok(Stream::Other(Box::new(stream))) }.boxed()
    }
}

impl AsyncRead for CannedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some((part, rest)) = self.parts.split_first() else {
            return Poll::Pending;
        };
        buf.put_slice(part);
        self.parts = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CannedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.parts = self.canned.response;
        self.canned.writes.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn canned(response: &'static [&'static [u8]]) -> (Backend, Runtime, Canned) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let dial = Canned {
        response,
        writes: Arc::default(),
    };
    let options = options("http://worker/", vec![([10, 0, 0, 1], 80).into()]);
    let backend = Backend::with_connector(options, Connector::new(dial.clone()));
    (backend, runtime, dial)
}

fn head() -> RequestHead {
    let mut head = get("/rooms/blue");
    head.bytes.reserve(96);
    head
}

#[test]
fn an_exchange_allocates_the_map_of_its_headers_and_nothing_else() {
    let (backend, runtime, _) = canned(&[WHOLE]);
    let exchange = |head| async {
        let mut reply = backend.send(0, head, none()).await.expect("a reply");
        assert_eq!(data(&mut reply.body).await, "hello");
    };
    let heads: Vec<_> = (0..100).map(|_| head()).collect();
    runtime.block_on(async {
        // Until the connection has its buffer, and the pool its place for it.
        for _ in 0..3 {
            exchange(head()).await;
        }
        for head in heads {
            let mut exchange = std::pin::pin!(exchange(head));
            let mut outcome = None;
            let info = allocation_counter::measure(|| outcome = exchange.as_mut().now_or_never());
            outcome.expect("it never waits");
            // The entries and the index of a map of headers.
            assert_eq!(info.count_total, 2, "{info:?}");
        }
    });
    assert_eq!(backend.idle(), 1);
}

#[test]
fn an_idle_connection_keeps_little_memory() {
    let (backend, runtime, _) = canned(&[HEAD, b"hello"]);
    let info = allocation_counter::measure(|| {
        runtime.block_on(async {
            let mut replies = Vec::new();
            for _ in 0..100 {
                replies.push(backend.send(0, head(), none()).await.expect("a reply"));
            }
            for reply in &mut replies {
                assert_eq!(data(&mut reply.body).await, "hello");
            }
        });
    });
    assert_eq!(backend.idle(), 100);
    let each = info.bytes_current / 100;
    assert!(each < 9 << 10, "{each} bytes each");
}

#[test]
fn a_request_whose_body_is_ready_is_one_write() {
    let (backend, runtime, dial) = canned(&[WHOLE]);
    for framing in [Framing::None, Framing::Length(5), Framing::Chunked] {
        let before = dial.writes.load(Ordering::Relaxed);
        let sent = backend.send(0, request("POST", "/", framing), full("hello"));
        runtime.block_on(sent).expect("a reply");
        let writes = dial.writes.load(Ordering::Relaxed) - before;
        assert_eq!(writes, 1, "{framing:?}");
    }
    assert_eq!(backend.idle(), 1);
}

#[test]
fn what_waits_for_a_response_is_small() {
    let (backend, ..) = canned(&[WHOLE]);
    let sent = backend.send(0, head(), none());
    assert!(size_of_val(&sent) < 2 << 10, "{} bytes", size_of_val(&sent));
}
