//! A backend over pipes, and the worker's ends of them.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Empty, Full};
use pinboard::upstream::{
    Backend, BackendOptions, Connector, Dial, ExchangeError, Framing, Reply, ReplyBody,
    RequestHead, Stream,
};
use pinned_domain::Domain;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;

/// How much a pipe holds each way.
pub(super) const PIPE: usize = 64 << 10;

/// A backend over pipes.
pub(super) struct Rig {
    pub(super) backend: Backend,
    pub(super) accepted: mpsc::UnboundedReceiver<DuplexStream>,
    pub(super) dialled: Arc<AtomicUsize>,
}

/// Dials by making a pipe, whose other end goes to the test. Nobody listens once that has gone.
pub(super) struct PipeDial {
    accept: mpsc::UnboundedSender<DuplexStream>,
    dialled: Arc<AtomicUsize>,
}

impl Dial for PipeDial {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'static, io::Result<Stream>> {
        self.dialled.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let outcome = match self.accept.send(theirs) {
            Ok(()) => Ok(Stream::Other(Box::new(ours))),
            Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        };
        async move { outcome }.boxed()
    }
}

/// What makes pipes, and where the other ends come out.
pub(super) fn pipes() -> (
    Connector,
    mpsc::UnboundedReceiver<DuplexStream>,
    Arc<AtomicUsize>,
) {
    let (accept, accepted) = mpsc::unbounded_channel();
    let dialled = Arc::new(AtomicUsize::new(0));
    let dial = PipeDial {
        accept,
        dialled: Arc::clone(&dialled),
    };
    (Connector::new(dial), accepted, dialled)
}

pub(super) fn options(url: &str, addresses: Vec<SocketAddr>) -> BackendOptions {
    BackendOptions {
        url: url.parse().expect("a URL"),
        addresses,
        lanes: 1,
        domain: Domain::real(),
    }
}

impl Rig {
    pub(super) fn new() -> Self {
        let (connector, accepted, dialled) = pipes();
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        Self {
            backend: Backend::with_connector(options("http://worker/", vec![address]), connector),
            accepted,
            dialled,
        }
    }

    /// How many connections have been made.
    pub(super) fn dialled(&self) -> usize {
        self.dialled.load(Ordering::Relaxed)
    }

    /// Sends a `GET` over a new connection, which the worker answers with `response` and closes.
    pub(super) async fn get(&mut self, response: &[u8]) -> Result<Reply, ExchangeError> {
        let (reply, ()) = tokio::join!(self.backend.send(0, get("/"), none()), async {
            let mut peer = Peer::new(self.accepted.recv().await.expect("a connection"));
            peer.head().await;
            // What is refused may not be read to its end.
            let _ = peer.stream.write_all(response).await;
        });
        reply
    }
}

/// The worker's end of a connection.
pub(super) struct Peer<S> {
    pub(super) stream: S,
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Peer<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream }
    }

    /// Reads a head, and nothing behind it.
    pub(super) async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.expect("more of a head"));
        }
        String::from_utf8(head).expect("text")
    }

    pub(super) async fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await.expect("more");
        bytes
    }

    /// Reads what is expected.
    pub(super) async fn expect(&mut self, expected: &str) {
        let read = self.read(expected.len()).await;
        assert_eq!(String::from_utf8_lossy(&read), expected);
    }

    pub(super) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.expect("open");
        self.stream.flush().await.expect("open");
    }

    /// Waits until the other end has closed the connection, and says how much came until then.
    pub(super) async fn closed(&mut self) -> usize {
        let mut rest = Vec::new();
        // A reset is an end as well.
        let _ = self.stream.read_to_end(&mut rest).await;
        rest.len()
    }

    /// Whether there is nothing to read, not even an end. It looks only once.
    pub(super) fn is_silent(&mut self) -> bool {
        self.stream.read_u8().now_or_never().is_none()
    }
}

// --- Requests ---

pub(super) fn request(method: &str, target: &str, framing: Framing) -> RequestHead {
    RequestHead {
        bytes: format!("{method} {target} HTTP/1.1\r\nhost: rooms.example\r\n").into_bytes(),
        framing,
        expect_continue: false,
        no_response_body: method == "HEAD",
        upgrade: None,
        accepts_trailers: false,
    }
}

pub(super) fn get(target: &str) -> RequestHead {
    request("GET", target, Framing::None)
}

pub(super) fn none() -> Empty<Bytes> {
    Empty::new()
}

pub(super) fn full(text: &'static str) -> Full<Bytes> {
    Full::new(Bytes::from_static(text.as_bytes()))
}

/// A body that the test feeds frame by frame.
pub(super) struct Fed {
    frames: mpsc::UnboundedReceiver<Result<Frame<Bytes>, BrokenOff>>,
}

/// What feeds it. Dropping it ends the body.
pub(super) struct Feeder {
    frames: mpsc::UnboundedSender<Result<Frame<Bytes>, BrokenOff>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the client went away")]
pub(super) struct BrokenOff;

pub(super) fn fed() -> (Feeder, Fed) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Feeder { frames: sender }, Fed { frames: receiver })
}

impl Feeder {
    pub(super) fn data(&self, text: &'static str) {
        let data = Bytes::from_static(text.as_bytes());
        // A body that nobody wants any more is no concern of the test's.
        let _ = self.frames.send(Ok(Frame::data(data)));
    }

    pub(super) fn trailers(&self, trailers: HeaderMap) {
        let _ = self.frames.send(Ok(Frame::trailers(trailers)));
    }

    pub(super) fn break_off(&self) {
        let _ = self.frames.send(Err(BrokenOff));
    }

    /// Whether the body is still wanted.
    pub(super) fn is_wanted(&self) -> bool {
        !self.frames.is_closed()
    }
}

impl Body for Fed {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.frames.poll_recv(cx)
    }
}

/// A body of so many bytes in frames of one size, made as they are asked for and counted.
pub(super) struct Endless {
    pub(super) left: u64,
    pub(super) frame: Bytes,
    pub(super) pulled: Arc<AtomicUsize>,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let length = self.left.min(self.frame.len() as u64);
        self.left -= length;
        self.pulled.fetch_add(length as usize, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(self.frame.slice(..length as usize)))))
    }
}

// --- Responses ---

/// The whole body as text.
pub(super) async fn text(body: ReplyBody) -> String {
    let all = body.collect().await.expect("a whole body").to_bytes();
    String::from_utf8(all.to_vec()).expect("text")
}

/// The data of the next frame.
pub(super) async fn data(body: &mut ReplyBody) -> Bytes {
    let frame = body.frame().await.expect("a frame").expect("no error");
    frame.into_data().expect("data")
}

/// How the body ends: what came before, and the error.
pub(super) async fn broken(mut body: ReplyBody) -> (Vec<u8>, io::Error) {
    let mut before = Vec::new();
    loop {
        match body.frame().await {
            Some(Ok(frame)) => before.extend(frame.into_data().expect("data")),
            Some(Err(error)) => {
                // P5.2: what is not whole never looks as if it were.
                assert!(!body.is_end_stream());
                assert!(matches!(body.frame().await, Some(Err(_))));
                return (before, error);
            }
            None => panic!("a clean end"),
        }
    }
}
