//! Which connections are used again, and which never.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::StatusCode;
use pinboard::upstream::{
    Backend, Connector, Dial, ExchangeErrorKind, Framing, IDLE_TIMEOUT, Stream,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::unconstrained;

use super::rig::{Peer, Rig, fed, full, get, none, options, request, text};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// One exchange over the connection behind `peer`, which must be idle.
async fn once_more(rig: &Rig, peer: &mut Peer<tokio::io::DuplexStream>) {
    let (reply, ()) = tokio::join!(rig.backend.send(0, get("/again"), none()), async {
        assert!(peer.head().await.starts_with("GET /again HTTP/1.1\r\n"));
        peer.write(OK).await;
    });
    assert_eq!(text(reply.expect("a reply").body).await, "ok");
}

/// A first exchange, with the worker's end of its connection.
async fn first(rig: &mut Rig, response: &str) -> (Peer<tokio::io::DuplexStream>, String) {
    let Rig { backend, .. } = rig;
    let sent = backend.send(0, get("/"), none());
    let mut sent = std::pin::pin!(sent);
    assert!(futures_util::poll!(&mut sent).is_pending());
    let mut peer = Peer::new(rig.accepted.try_recv().expect("a connection"));
    peer.head().await;
    peer.write(response).await;
    let reply = sent.await.expect("a reply");
    let body = text(reply.body).await;
    (peer, body)
}

// P5.4
#[tokio::test(start_paused = true)]
async fn a_connection_is_used_again_after_a_whole_response() {
    let mut rig = Rig::new();
    let (mut peer, _) = first(&mut rig, OK).await;
    assert_eq!(rig.backend.idle(), 1);
    for _ in 0..3 {
        once_more(&rig, &mut peer).await;
    }
    assert_eq!((rig.dialled(), rig.backend.idle()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_connection_is_free_when_a_response_was_there_with_its_head() {
    let rig = &mut Rig::new();
    let mut reply = None;
    for response in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ] {
        let (sent, _peer) = tokio::join!(rig.backend.send(0, get("/"), none()), async {
            let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
            peer.head().await;
            peer.write(response).await;
            peer
        });
        assert_eq!(rig.backend.idle(), 1, "before its body was read");
        // With the last worker's end, so that the next one is dialled.
        rig.backend.reap();
        reply = Some(sent.expect("a reply"));
        tokio::time::advance(IDLE_TIMEOUT).await;
    }
    assert_eq!(text(reply.expect("one").body).await, "ok");
}

#[tokio::test(start_paused = true)]
async fn the_last_used_connection_is_used_first() {
    let mut rig = Rig::new();
    let mut one = std::pin::pin!(rig.backend.send(0, get("/1"), none()));
    let mut two = std::pin::pin!(rig.backend.send(0, get("/2"), none()));
    assert!(futures_util::poll!(&mut one).is_pending());
    assert!(futures_util::poll!(&mut two).is_pending());
    let mut first = Peer::new(rig.accepted.try_recv().expect("a connection"));
    let mut second = Peer::new(rig.accepted.try_recv().expect("a connection"));
    first.write(OK).await;
    one.await.expect("a reply");
    second.write(OK).await;
    two.await.expect("a reply");
    second.head().await;
    first.head().await;
    once_more(&rig, &mut second).await;
    assert!(first.is_silent());
}

// P5.12: uvicorn closes what was idle for 5 s.
#[tokio::test(start_paused = true)]
async fn a_connection_that_was_idle_for_too_long_is_not_used() {
    let mut rig = Rig::new();
    let (mut peer, _) = first(&mut rig, OK).await;
    assert!(IDLE_TIMEOUT < Duration::from_secs(5));
    tokio::time::advance(IDLE_TIMEOUT - Duration::from_millis(1)).await;
    once_more(&rig, &mut peer).await;
    tokio::time::advance(IDLE_TIMEOUT).await;
    let (mut other, _) = first(&mut rig, OK).await;
    assert_eq!(peer.closed().await, 0);
    once_more(&rig, &mut other).await;
}

#[tokio::test(start_paused = true)]
async fn reaping_closes_what_was_idle_for_too_long() {
    let mut rig = Rig::new();
    let (mut peer, _) = first(&mut rig, OK).await;
    rig.backend.reap();
    assert_eq!(rig.backend.idle(), 1);
    tokio::time::advance(IDLE_TIMEOUT).await;
    rig.backend.reap();
    assert_eq!(rig.backend.idle(), 0);
    assert_eq!(peer.closed().await, 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_connections_are_kept_idle_than_may_be() {
    let mut rig = Rig::new();
    let mut sent: Vec<_> = (0..300)
        .map(|_| Box::pin(rig.backend.send(0, get("/"), none())))
        .collect();
    for sent in &mut sent {
        // More than tokio lets a task do in one go.
        let polled = unconstrained(async { futures_util::poll!(sent) });
        assert!(polled.await.is_pending());
    }
    let mut peers = Vec::new();
    while let Ok(stream) = rig.accepted.try_recv() {
        peers.push(Peer::new(stream));
        peers.last_mut().expect("one").write(OK).await;
    }
    for sent in sent {
        sent.await.expect("a reply");
    }
    assert_eq!((peers.len(), rig.backend.idle()), (300, 256));
    // The oldest were closed.
    peers[0].head().await;
    assert_eq!(peers[0].closed().await, 0);
    peers[299].head().await;
    assert!(peers[299].is_silent());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_closed_while_idle_is_left_for_another() {
    let mut rig = Rig::new();
    let (peer, _) = first(&mut rig, OK).await;
    drop(peer);
    let (mut peer, body) = first(&mut rig, OK).await;
    assert_eq!(body, "ok");
    assert_eq!(rig.dialled(), 2);
    once_more(&rig, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn every_connection_of_a_worker_that_has_gone_is_left_before_one_is_dialled() {
    let rig = &mut Rig::new();
    let mut sent: Vec<_> = (0..5)
        .map(|_| Box::pin(rig.backend.send(0, get("/"), none())))
        .collect();
    for sent in &mut sent {
        assert!(futures_util::poll!(sent).is_pending());
    }
    let mut peers = Vec::new();
    while let Ok(stream) = rig.accepted.try_recv() {
        peers.push(Peer::new(stream));
        peers.last_mut().expect("one").write(OK).await;
    }
    for sent in sent {
        sent.await.expect("a reply");
    }
    drop(peers);
    rig.accepted.close();
    // P5.11: and when that fails too, nothing has reached the worker.
    let error = rig
        .backend
        .send(0, get("/"), none())
        .await
        .expect_err("gone");
    assert_eq!(error.kind, ExchangeErrorKind::Unreachable);
    assert!(!error.may_have_reached);
    assert_eq!((rig.dialled(), rig.backend.idle()), (6, 0));
}

#[tokio::test(start_paused = true)]
async fn a_body_is_not_lost_with_a_connection_that_was_closed_while_idle() {
    let mut rig = Rig::new();
    let (peer, _) = first(&mut rig, OK).await;
    drop(peer);
    let head = request("POST", "/", Framing::Length(5));
    let (reply, ()) = tokio::join!(rig.backend.send(0, head, full("hello")), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.expect("hello").await;
        peer.write(OK).await;
    });
    assert_eq!(reply.expect("a reply").status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_nobody_asked_for_spoil_an_idle_connection() {
    let mut rig = Rig::new();
    let (mut peer, _) = first(&mut rig, OK).await;
    peer.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")
        .await;
    let (_, body) = first(&mut rig, OK).await;
    assert_eq!((body.as_str(), rig.dialled()), ("ok", 2));
    assert_eq!(peer.closed().await, 0);
}

/// Takes a request at once, and the next one only after a wait in which it gives an answer that nobody asked for.
struct Hasty {
    taken: usize,
    answer: &'static str,
}

impl AsyncRead for Hasty {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let answer = std::mem::take(&mut self.answer);
        buf.put_slice(answer.as_bytes());
        match answer {
            "" => Poll::Pending,
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Hasty {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.taken += 1;
        if self.taken == 2 {
            self.answer = "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n";
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.answer = OK;
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Dial for Hasty {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'static, io::Result<Stream>> {
        let stream = Self {
            taken: 0,
            answer: "",
        };
        async { Ok(Stream::Other(Box::new(stream))) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_before_a_request_was_written_is_no_answer_to_it() {
    let dial = Hasty {
        taken: 0,
        answer: "",
    };
    let options = options("http://worker/", vec![([127, 0, 0, 1], 80).into()]);
    let backend = Backend::with_connector(options, Connector::new(dial));
    for _ in 0..4 {
        let reply = backend.send(0, get("/"), none()).await.expect("a reply");
        assert_eq!(reply.status, StatusCode::OK);
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_behind_a_response_spoil_its_connection() {
    let mut rig = Rig::new();
    let (mut peer, body) = first(&mut rig, &format!("{OK}HTTP/1.1 200 OK\r\n")).await;
    assert_eq!((body.as_str(), rig.backend.idle()), ("ok", 0));
    assert_eq!(peer.closed().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_says_so_ends_its_connection() {
    for response in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\ncontent-length: 2\r\nconnection: x , CLOSE\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok",
        "HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n",
    ] {
        let mut rig = Rig::new();
        let (mut peer, _) = first(&mut rig, response).await;
        assert_eq!(rig.backend.idle(), 0, "{response}");
        assert_eq!(peer.closed().await, 0, "{response}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_dropped_early_ends_its_connection() {
    let mut rig = Rig::new();
    let sent = rig.backend.send(0, get("/"), none());
    let (reply, mut peer) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf ")
            .await;
        peer
    });
    drop(reply.expect("a reply"));
    assert_eq!((peer.closed().await, rig.backend.idle()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_ends_its_connection() {
    let mut rig = Rig::new();
    let (mut peer, _) = first(&mut rig, OK).await;
    {
        let mut sent = std::pin::pin!(rig.backend.send(0, get("/again"), none()));
        assert!(futures_util::poll!(&mut sent).is_pending());
    }
    peer.head().await;
    assert_eq!((peer.closed().await, rig.backend.idle()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_body_breaks_off_ends_its_connection() {
    let mut rig = Rig::new();
    let (mut peer, _) = first(&mut rig, OK).await;
    let (feeder, body) = fed();
    feeder.data("half ");
    feeder.break_off();
    let head = request("POST", "/", Framing::Length(10));
    let error = rig.backend.send(0, head, body).await.expect_err("no body");
    assert_eq!(error.kind, ExchangeErrorKind::Body);
    assert!(error.may_have_reached);
    peer.head().await;
    assert_eq!((peer.closed().await, rig.backend.idle()), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn each_lane_has_connections_of_its_own() {
    let mut options = options("http://worker/", vec![([127, 0, 0, 1], 80).into()]);
    options.lanes = 2;
    let (connector, mut accepted, _) = super::rig::pipes();
    let backend = Backend::with_connector(options, connector);
    let mut peers = Vec::new();
    // A lane too many is one of those that there are.
    for lane in [0, 1, 1, 3, 0] {
        let mut sent = std::pin::pin!(backend.send(lane, get("/"), none()));
        assert!(futures_util::poll!(&mut sent).is_pending());
        if let Ok(stream) = accepted.try_recv() {
            peers.push(Peer::new(stream));
        }
        let peer = &mut peers[lane % 2];
        peer.head().await;
        peer.write(OK).await;
        sent.await.expect("a reply");
    }
    assert_eq!((peers.len(), backend.idle()), (2, 2));
}

// P5.11: a request that may have reached the worker is never sent twice.
#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_after_the_request_was_written_is_an_error() {
    let mut rig = Rig::new();
    let (mut peer, _) = first(&mut rig, OK).await;
    let (reply, ()) = tokio::join!(rig.backend.send(0, get("/"), none()), async {
        peer.head().await;
        drop(peer);
    });
    let error = reply.expect_err("no response");
    assert_eq!(error.kind, ExchangeErrorKind::Reset);
    assert!(error.may_have_reached);
    assert_eq!(rig.dialled(), 1);
}

/// What is sent afterwards over the same loopback, on another connection, comes after it.
async fn what_was_sent_has_come(listener: &TcpListener) {
    let address = listener.local_addr().expect("an address");
    let (here, there) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (mut here, mut there) = (
        Peer::new(here.expect("open")),
        Peer::new(there.expect("open").0),
    );
    there.write("x").await;
    here.expect("x").await;
}

#[tokio::test]
async fn a_worker_that_closes_idle_tcp_connections_is_connected_to_anew() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let backend = Backend::new(options(&format!("http://{address}/"), vec![address]));
    for _ in 0..3 {
        let (mut replies, worker) = tokio::join!(
            async {
                let mut replies = Vec::new();
                for _ in 0..2 {
                    let reply = backend.send(0, get("/"), none()).await.expect("a reply");
                    replies.push(text(reply.body).await);
                }
                replies
            },
            async {
                let mut peer = Peer::new(listener.accept().await.expect("a connection").0);
                for _ in 0..2 {
                    peer.head().await;
                    peer.write(OK).await;
                }
                peer
            }
        );
        assert_eq!((replies.len(), replies.pop().as_deref()), (2, Some("ok")));
        assert_eq!(backend.idle(), 1);
        drop(worker);
        what_was_sent_has_come(&listener).await;
    }
}

#[tokio::test]
async fn bytes_that_nobody_asked_for_spoil_an_idle_tcp_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let backend = Backend::new(options(&format!("http://{address}/"), vec![address]));
    let mut spoilt = Vec::new();
    for _ in 0..2 {
        let (reply, peer) = tokio::join!(
            async {
                let reply = backend.send(0, get("/"), none()).await.expect("a reply");
                text(reply.body).await
            },
            async {
                let mut peer = Peer::new(listener.accept().await.expect("a connection").0);
                peer.head().await;
                peer.write(OK).await;
                peer
            }
        );
        assert_eq!(reply, "ok");
        let mut peer = peer;
        peer.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")
            .await;
        spoilt.push(peer);
        what_was_sent_has_come(&listener).await;
    }
}
