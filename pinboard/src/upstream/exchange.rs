//! A request and the head of its response.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::Body;
use pinned_domain::Domain;
use tokio::time::Instant;

use super::connection::Connection;
use super::pool::Lane;
use super::reply::{Parts, ReplyBody};
use super::request::{Outgoing, SendError, Sent, Upload};
use super::response::{Malformed, ResponseHead, Section};
use super::{ExchangeError, ExchangeErrorKind, Reply, RequestHead, Upgraded};

/// A request and the head of its response, driven by whoever polls it. It keeps the request when a connection turns
/// out to be of no use, so that another can be tried.
pub(super) struct Exchange<B> {
    outgoing: Outgoing<B>,
    sending: Sending,
    section: Section,
    no_response_body: bool,
    upgrade: bool,
}

enum Sending {
    Ongoing,
    Done,
    /// The worker takes no more, but may have answered.
    Broken(io::Error),
}

/// Why no head came.
pub(super) enum Failure {
    /// The connection had been closed, or spoilt, while it was idle. Nothing was written.
    Stale,
    Failed(ExchangeError),
}

impl<B> Exchange<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    pub(super) fn new(head: RequestHead, body: B, domain: &Domain) -> Self {
        Self {
            no_response_body: head.no_response_body,
            upgrade: head.upgrade.is_some(),
            outgoing: Outgoing::new(head, body, domain),
            sending: Sending::Ongoing,
            section: ResponseHead::section(),
        }
    }

    /// Sends, and reads until the head of the final response has come. Those of interim ones go to `interim`.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        connection: &mut Connection,
        was_idle: bool,
        interim: &mut impl FnMut(StatusCode, HeaderMap),
    ) -> Poll<Result<ResponseHead, Failure>> {
        loop {
            let is_still_idle = was_idle && !self.outgoing.may_have_reached();
            if is_still_idle && connection.has_come(cx) {
                // Its end has come, or something that nobody asked for.
                return Poll::Ready(Err(Failure::Stale));
            }
            let has_sent = match &self.sending {
                Sending::Ongoing => match self.outgoing.poll_send(cx, &mut connection.stream) {
                    Poll::Ready(Ok(sent)) => {
                        if sent == Sent::All {
                            self.sending = Sending::Done;
                        }
                        true
                    }
                    Poll::Ready(Err(SendError::Write(error))) => {
                        if is_still_idle && !self.outgoing.may_have_reached() {
                            return Poll::Ready(Err(Failure::Stale));
                        }
                        self.sending = Sending::Broken(error);
                        true
                    }
                    Poll::Ready(Err(SendError::Body(error))) => {
                        let error = io::Error::other(error);
                        return self.fail(ExchangeErrorKind::Body, error);
                    }
                    Poll::Pending => false,
                },
                Sending::Done | Sending::Broken(_) => false,
            };
            if is_still_idle && !self.outgoing.may_have_reached() {
                // What is read now would not be an answer.
                match has_sent {
                    true => continue,
                    // Only where the worker has left earlier bytes unread: now somebody waits, and is woken by its end too.
                    false if connection.poll_fill(cx).is_ready() => {
                        return Poll::Ready(Err(Failure::Stale));
                    }
                    false => return Poll::Pending,
                }
            }
            let was_waiting = self.outgoing.is_waiting();
            match self.take_head(connection, interim) {
                Ok(Some(head)) => return Poll::Ready(Ok(head)),
                Ok(None) if was_waiting && !self.outgoing.is_waiting() => continue,
                Ok(None) => {}
                Err(malformed) => return self.fail(ExchangeErrorKind::Malformed, malformed.into()),
            }
            match connection.poll_fill(cx) {
                Poll::Ready(Ok(0)) => {
                    let error = io::ErrorKind::UnexpectedEof.into();
                    return self.fail(ExchangeErrorKind::Reset, error);
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return self.fail(ExchangeErrorKind::Reset, error),
                // There may be more to send at once.
                Poll::Pending if has_sent && matches!(self.sending, Sending::Ongoing) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// The head of the final response, if it has come.
    fn take_head(
        &mut self,
        connection: &mut Connection,
        interim: &mut impl FnMut(StatusCode, HeaderMap),
    ) -> Result<Option<ResponseHead>, Malformed> {
        let buffer = &mut connection.buffer;
        while let Some(head) = ResponseHead::take(buffer, &mut self.section, self.no_response_body)?
        {
            match head.status {
                StatusCode::SWITCHING_PROTOCOLS => {
                    if !self.upgrade || !matches!(self.sending, Sending::Done) {
                        return Err(Malformed("101 to a request that may not be upgraded"));
                    }
                    return Ok(Some(head));
                }
                StatusCode::CONTINUE => self.outgoing.go_on(),
                status if status.is_informational() => interim(status, head.headers),
                _ => return Ok(Some(head)),
            }
        }
        Ok(None)
    }

    fn fail<T>(&mut self, kind: ExchangeErrorKind, source: io::Error) -> Poll<Result<T, Failure>> {
        // That it broke off while sending is the better reason: the end of the stream follows from it.
        let source = match std::mem::replace(&mut self.sending, Sending::Done) {
            Sending::Broken(error) if kind == ExchangeErrorKind::Reset => error,
            _ => source,
        };
        Poll::Ready(Err(Failure::Failed(ExchangeError {
            kind,
            may_have_reached: self.outgoing.may_have_reached(),
            source,
        })))
    }

    /// The response, whose body goes on with what is left of the request. The connection goes to `home` once both are
    /// over.
    pub(super) fn into_reply(
        mut self,
        head: ResponseHead,
        came_at: Instant,
        connection: Box<Connection>,
        home: Option<&Arc<Lane>>,
    ) -> Reply {
        let (status, headers) = (head.status, head.headers);
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Reply {
                status,
                headers,
                came_at,
                body: ReplyBody::empty(),
                upgraded: Some(Box::new(Upgraded::new(*connection))),
            };
        }
        let (upload, is_sent): (Option<Box<dyn Upload>>, bool) = match self.sending {
            Sending::Done => (None, true),
            Sending::Broken(_) => (None, false),
            // The response came instead of a 100: nobody wants the body.
            Sending::Ongoing if self.outgoing.is_waiting() && !status.is_success() => (None, false),
            Sending::Ongoing => {
                // Or it came before the handler has begun to read (hyper asks for the body only then), and the rest
                // of it waits for what the handler reads.
                self.outgoing.go_on();
                (Some(Box::new(self.outgoing)), true)
            }
        };
        let body = ReplyBody::new(Parts {
            connection,
            came_at,
            decoder: head.body,
            upload,
            home: home.filter(|_| head.is_persistent && is_sent),
        });
        Reply {
            status,
            headers,
            came_at,
            body,
            upgraded: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use http_body_util::Empty;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpSocket, TcpStream};

    use super::*;
    use crate::upstream::{Framing, Stream};

    /// A connection that takes no more, because its worker does not read.
    async fn full_pipe() -> (Connection, TcpStream) {
        let (here, there) = (TcpSocket::new_v4(), TcpSocket::new_v4());
        let (here, there) = (here.expect("a socket"), there.expect("a socket"));
        here.set_send_buffer_size(8 << 10).expect("settable");
        there.set_recv_buffer_size(4 << 10).expect("settable");
        there.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let listener = there.listen(1).expect("bound");
        let address = listener.local_addr().expect("bound");
        let (here, there) = tokio::join!(here.connect(address), listener.accept());
        let (here, (there, _)) = (here.expect("open"), there.expect("open"));
        here.writable().await.expect("open");
        while here.try_write(&[b'x'; 1 << 10]).is_ok() {}
        (Connection::new(Stream::Tcp(here)), there)
    }

    #[tokio::test]
    async fn a_request_that_cannot_be_written_hears_what_its_worker_says_or_that_it_ends() {
        for says in ["HTTP/1.1 408 Request Timeout\r\n\r\n", ""] {
            let (mut connection, mut worker) = full_pipe().await;
            let domain = Domain::real();
            let head = RequestHead {
                bytes: b"GET / HTTP/1.1\r\n".to_vec(),
                framing: Framing::None,
                expect_continue: false,
                no_response_body: false,
                upgrade: None,
                accepts_trailers: false,
            };
            let mut exchange = Exchange::new(head, Empty::<Bytes>::new(), &domain);
            let asking =
                poll_fn(|cx| exchange.poll_head(cx, &mut connection, true, &mut |_, _| {}));
            // Its end polls once more, which would do for a wake-up: it must not be that.
            let (limit, began) = (Duration::from_secs(30), domain.monotonic());
            let asking = domain.timeout(limit, asking);
            let (asked, ()) = tokio::join!(asking, async {
                worker.write_all(says.as_bytes()).await.expect("open");
                if says.is_empty() {
                    worker.shutdown().await.expect("open");
                }
            });
            assert!(matches!(asked, Ok(Err(Failure::Stale))), "{says:?}");
            assert!(domain.monotonic() - began < limit, "{says:?}");
        }
    }
}
