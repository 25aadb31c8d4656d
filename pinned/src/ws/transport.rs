//! The connection below a socket.

use std::{
    fmt,
    future::Future,
    io::{self, Read, Write},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use http::Extensions;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes in both directions, whatever is below.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection for a socket whose request did not come over one.
///
/// Put it into a request's extensions to upgrade without a server, as an in-process test client does. Clones share
/// the connection, and the first upgrade takes it.
///
/// ```
/// # use pinned::ws::InProcessUpgrade;
/// let (client, server) = tokio::io::duplex(16 * 1024);
/// let request = http::Request::builder()
///     .header("connection", "upgrade")
///     .header("upgrade", "websocket")
///     .header("sec-websocket-version", "13")
///     .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
///     .extension(InProcessUpgrade::new(server))
///     .body(());
/// # drop((client, request));
/// ```
#[derive(Clone)]
pub struct InProcessUpgrade {
    stream: Arc<Mutex<Option<Box<dyn Duplex>>>>,
}

/// The connection that an upgrade will have.
pub(super) enum Transport {
    /// A server hands it over once the answer is out.
    Server(OnUpgrade),
    /// It is there.
    InProcess(Box<dyn Duplex>),
    /// It has been handed over, or the client left before it could be.
    Gone,
}

/// The connection as the protocol's state machine sees it: it never blocks, and a `WouldBlock` has left the socket's
/// waker with the connection.
///
/// `tokio-tungstenite` does the same for one reader and one writer; here any number of tasks wait on one socket.
pub(super) struct Io {
    stream: Box<dyn Duplex>,
    waker: Waker,
    heard: bool,
}

// ===== impl InProcessUpgrade =====

impl InProcessUpgrade {
    /// Offers `stream` as the server's end of the connection.
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self {
            stream: Arc::new(Mutex::new(Some(Box::new(stream)))),
        }
    }
}

impl fmt::Debug for InProcessUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessUpgrade").finish_non_exhaustive()
    }
}

// ===== impl Transport =====

impl Transport {
    /// Takes the means of an upgrade out of a request, if it has any.
    pub(super) fn take(extensions: &mut Extensions) -> Option<Self> {
        if let Some(upgrade) = extensions.remove::<InProcessUpgrade>() {
            return upgrade.stream.lock().take().map(Self::InProcess);
        }
        extensions.remove::<OnUpgrade>().map(Self::Server)
    }

    /// Ready with the connection once it has been handed over, or with none when the client left before.
    pub(super) fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<Option<Io>> {
        let stream: Option<Box<dyn Duplex>> = match std::mem::replace(self, Self::Gone) {
            Self::InProcess(stream) => Some(stream),
            Self::Server(mut upgrade) => match Pin::new(&mut upgrade).poll(cx) {
                Poll::Ready(Ok(upgraded)) => Some(Box::new(TokioIo::new(upgraded))),
                Poll::Ready(Err(_)) => None,
                Poll::Pending => {
                    *self = Self::Server(upgrade);
                    return Poll::Pending;
                }
            },
            Self::Gone => None,
        };
        Poll::Ready(stream.map(|stream| Io {
            stream,
            waker: cx.waker().clone(),
            heard: false,
        }))
    }
}

// ===== impl Io =====

impl Io {
    /// Whether bytes have arrived since this was asked last.
    pub(super) fn take_heard(&mut self) -> bool {
        std::mem::take(&mut self.heard)
    }

    /// Ends the writing side.
    pub(super) fn poll_shutdown(&mut self) -> Poll<io::Result<()>> {
        let mut cx = Context::from_waker(&self.waker);
        Pin::new(&mut self.stream).poll_shutdown(&mut cx)
    }
}

impl Read for Io {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut cx = Context::from_waker(&self.waker);
        let mut buf = ReadBuf::new(buf);
        blocking(Pin::new(&mut self.stream).poll_read(&mut cx, &mut buf))?;
        let read = buf.filled().len();
        self.heard |= read > 0;
        Ok(read)
    }
}

impl Write for Io {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let mut cx = Context::from_waker(&self.waker);
        blocking(Pin::new(&mut self.stream).poll_write(&mut cx, buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut cx = Context::from_waker(&self.waker);
        blocking(Pin::new(&mut self.stream).poll_flush(&mut cx))
    }
}

fn blocking<T>(poll: Poll<io::Result<T>>) -> io::Result<T> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
