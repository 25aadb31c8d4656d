//! Responses before the response: `100 Continue`, and others.

use std::time::Duration;

use http::StatusCode;
use pinboard::upstream::{Framing, RequestHead};
use pinned_domain::Domain;

use super::rig::{Peer, Rig, fed, full, get, none, request, text};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn expecting(framing: Framing) -> RequestHead {
    let mut head = request("PUT", "/", framing);
    head.bytes.extend_from_slice(b"expect: 100-continue\r\n");
    head.expect_continue = true;
    head
}

// P5.2
#[tokio::test(start_paused = true)]
async fn a_body_that_waits_is_sent_once_the_worker_asks_for_it() {
    for framing in [Framing::Length(5), Framing::Chunked] {
        let mut rig = Rig::new();
        let start = Domain::real().monotonic();
        let (feeder, body) = fed();
        feeder.data("hello");
        drop(feeder);
        let (reply, ()) = tokio::join!(rig.backend.send(0, expecting(framing), body), async {
            let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
            peer.head().await;
            assert!(peer.is_silent());
            tokio::task::yield_now().await;
            assert!(peer.is_silent());
            peer.write("HTTP/1.1 100 Continue\r\n\r\n").await;
            match framing {
                Framing::Chunked => peer.expect("5\r\nhello\r\n0\r\n\r\n").await,
                _ => peer.expect("hello").await,
            }
            peer.write(OK).await;
        });
        assert_eq!(text(reply.expect("a reply").body).await, "ok");
        assert_eq!((start.elapsed(), rig.backend.idle()), (Duration::ZERO, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_waits_is_never_sent_when_the_response_comes_first() {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    feeder.data("hello");
    let sent = rig.backend.send(0, expecting(Framing::Length(5)), body);
    let (reply, mut peer) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 417 No\r\ncontent-length: 2\r\n\r\nno")
            .await;
        peer
    });
    let reply = reply.expect("a reply");
    assert_eq!(reply.status, StatusCode::EXPECTATION_FAILED);
    assert!(!feeder.is_wanted());
    assert_eq!(text(reply.body).await, "no");
    // The worker cannot know whether the body still comes.
    assert_eq!((peer.closed().await, rig.backend.idle()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_waits_is_not_asked_for_when_a_whole_response_comes_first() {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    feeder.data("hello");
    let sent = rig.backend.send(0, expecting(Framing::Length(5)), body);
    let (reply, mut peer) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write(OK).await;
        peer
    });
    assert_eq!(text(reply.expect("a reply").body).await, "ok");
    assert!(!feeder.is_wanted());
    assert_eq!((peer.closed().await, rig.backend.idle()), (0, 0));
}

// As hyper does for a handler that streams: it asks for the body when that is first read, which may be after the head.
#[tokio::test(start_paused = true)]
async fn a_body_that_waits_is_sent_when_a_success_waits_for_it() {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    feeder.data("hello");
    drop(feeder);
    let sent = rig.backend.send(0, expecting(Framing::Length(5)), body);
    let (reply, mut peer) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
            .await;
        peer
    });
    let (body, ()) = tokio::join!(text(reply.expect("a reply").body), async {
        peer.expect("hello").await;
        peer.write("ok").await;
    });
    assert_eq!((body.as_str(), rig.backend.idle()), ("ok", 1));
}

// RFC 9110, 10.1.1: a client should not wait for ever.
#[tokio::test(start_paused = true)]
async fn a_body_that_waits_is_sent_after_a_second_without_an_answer() {
    let mut rig = Rig::new();
    let start = Domain::real().monotonic();
    let sent = rig
        .backend
        .send(0, expecting(Framing::Length(5)), full("hello"));
    let (reply, ()) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.expect("hello").await;
        assert_eq!(start.elapsed().as_secs(), 1);
        // One that comes late changes nothing.
        peer.write("HTTP/1.1 100 Continue\r\n\r\n").await;
        peer.write(OK).await;
    });
    assert_eq!(text(reply.expect("a reply").body).await, "ok");
    assert_eq!(rig.backend.idle(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_body_waits_for_nothing() {
    let mut rig = Rig::new();
    let start = Domain::real().monotonic();
    let sent = rig.backend.send(0, expecting(Framing::Length(0)), none());
    let (reply, ()) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write(OK).await;
    });
    assert_eq!(reply.expect("a reply").status, StatusCode::OK);
    assert_eq!((start.elapsed(), rig.backend.idle()), (Duration::ZERO, 1));
}

#[tokio::test(start_paused = true)]
async fn other_interim_responses_are_passed_on_in_order() {
    let mut rig = Rig::new();
    let mut seen = Vec::new();
    let interim = |status: StatusCode, headers: http::HeaderMap| {
        let link = headers
            .get("link")
            .map(|link| link.to_str().expect("text").to_owned());
        seen.push((status.as_u16(), link));
    };
    let sent = rig.backend.send_with_interim(0, get("/"), none(), interim);
    let (reply, ()) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            .await;
        tokio::task::yield_now().await;
        peer.write("HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n")
            .await;
        peer.write(OK).await;
    });
    assert_eq!(text(reply.expect("a reply").body).await, "ok");
    assert_eq!(
        seen,
        [(102, None), (103, Some("</a>; rel=preload".to_owned()))]
    );
    assert_eq!(rig.backend.idle(), 1);
}

#[tokio::test(start_paused = true)]
async fn interim_responses_without_end_take_no_memory() {
    let mut rig = Rig::new();
    let sent = rig.backend.send(0, get("/"), none());
    let (reply, ()) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        let many = "HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000);
        for _ in 0..100 {
            peer.write(&many).await;
        }
        peer.write(OK).await;
    });
    assert_eq!(text(reply.expect("a reply").body).await, "ok");
}
