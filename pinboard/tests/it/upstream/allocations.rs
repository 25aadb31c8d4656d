//! What an exchange costs in memory.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pinboard::upstream::{Backend, Connector, Dial, RequestHead, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::rig::{data, get, none, options};

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    server: worker\r\ncontent-length: 5\r\n\r\nhello";

/// Answers each request at once, with no memory of its own.
struct Canned;

struct CannedStream {
    is_asked: bool,
}

impl Dial for Canned {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'static, io::Result<Stream>> {
        async { Ok(Stream::Other(Box::new(CannedStream { is_asked: false }))) }.boxed()
    }
}

impl AsyncRead for CannedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_asked {
            return Poll::Pending;
        }
        self.is_asked = false;
        buf.put_slice(RESPONSE);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CannedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_asked = true;
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn canned() -> (Backend, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let address = SocketAddr::from(([10, 0, 0, 1], 80));
    let options = options("http://worker/", vec![address]);
    (
        Backend::with_connector(options, Connector::new(Canned)),
        runtime,
    )
}

fn head() -> RequestHead {
    let mut head = get("/rooms/blue");
    head.bytes.reserve(96);
    head
}

#[test]
fn an_exchange_allocates_the_map_of_its_headers_and_nothing_else() {
    let (backend, runtime) = canned();
    let exchange = |head| async {
        let mut reply = backend.send(0, head, none()).await.expect("a reply");
        assert_eq!(data(&mut reply.body).await, "hello");
    };
    // Until the connection has its buffer, and the pool its place for it.
    (0..3).for_each(|_| runtime.block_on(exchange(head())));
    let heads: Vec<_> = (0..100).map(|_| head()).collect();
    // Only what is done inside the runtime counts, not its start.
    let info = runtime.block_on(async {
        let mut total = 0;
        for head in heads {
            let mut exchange = std::pin::pin!(exchange(head));
            let mut outcome = None;
            let info = allocation_counter::measure(|| outcome = exchange.as_mut().now_or_never());
            outcome.expect("it never waits");
            total += info.count_total;
        }
        total
    });
    // The entries and the index of a map of headers.
    assert_eq!(info, 2 * 100);
    assert_eq!(backend.idle(), 1);
}

#[test]
fn an_idle_connection_keeps_little_memory() {
    let (backend, runtime) = canned();
    let info = allocation_counter::measure(|| {
        runtime.block_on(async {
            let mut sent: Vec<_> = (0..100)
                .map(|_| Box::pin(backend.send(0, head(), none())))
                .collect();
            let mut replies = Vec::new();
            // All of them first, so that none takes a connection that another has left.
            for sent in &mut sent {
                replies.push(sent.await.expect("a reply"));
            }
        });
    });
    assert!(backend.idle() > 0);
    let each = info.bytes_current / i64::try_from(backend.idle()).expect("few");
    assert!(each < 10 << 10, "{each} bytes each");
}
