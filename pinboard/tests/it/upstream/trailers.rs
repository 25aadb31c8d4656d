//! Trailers, both ways (P5.2).

use http::{HeaderMap, HeaderValue};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use pinboard::upstream::Framing;

use super::rig::{Peer, Rig, fed, get, none, request};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test(start_paused = true)]
async fn trailers_of_a_response_are_its_last_frame() {
    for body in ["5\r\nhello\r\n0\r\n", "0\r\n"] {
        let mut rig = Rig::new();
        let mut head = get("/");
        head.accepts_trailers = true;
        let (reply, _peer) = tokio::join!(rig.backend.send(0, head, none()), async {
            let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
            let head = peer.head().await;
            assert!(
                head.ends_with("\r\nconnection: te\r\nte: trailers\r\n\r\n"),
                "{head}"
            );
            peer.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                .await;
            peer.write(body).await;
            peer.write("X-Sum: 1\r\nx-sum: 2\r\n\r\n").await;
            peer
        });
        let collected = reply
            .expect("a reply")
            .body
            .collect()
            .await
            .expect("a body");
        let sums: Vec<_> = collected
            .trailers()
            .expect("some")
            .get_all("x-sum")
            .iter()
            .collect();
        assert_eq!(sums, ["1", "2"]);
        assert_eq!(rig.backend.idle(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_connection_is_free_once_the_trailers_have_come() {
    let mut rig = Rig::new();
    let (reply, mut peer) = tokio::join!(rig.backend.send(0, get("/"), none()), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: b\r\n")
            .await;
        peer
    });
    let mut body = reply.expect("a reply").body;
    assert!(futures_util::poll!(body.frame()).is_pending());
    assert_eq!(rig.backend.idle(), 0);
    peer.write("\r\n").await;
    assert!(
        body.frame()
            .await
            .expect("a frame")
            .expect("no error")
            .is_trailers()
    );
    assert_eq!(rig.backend.idle(), 1);
    assert!(body.is_end_stream());
    assert!(body.frame().await.is_none());
}

/// What goes out for a request with `framing` whose body is one frame and `trailers`.
async fn sent_with(framing: Framing, trailers: HeaderMap) -> String {
    let mut rig = Rig::new();
    let (feeder, body) = fed();
    feeder.data("hello");
    feeder.trailers(trailers);
    let head = request("POST", "/", framing);
    let (reply, read) = tokio::join!(rig.backend.send(0, head, body), async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        let mut read = peer.head().await;
        while !read.ends_with(if framing == Framing::Chunked {
            "0\r\n\r\n"
        } else {
            "hello"
        }) && !read.ends_with("2\r\n\r\n")
        {
            read.push(char::from(peer.read(1).await[0]));
        }
        peer.write(OK).await;
        read
    });
    reply.expect("a reply");
    assert_eq!(rig.backend.idle(), 1);
    read
}

#[tokio::test(start_paused = true)]
async fn trailers_of_a_request_follow_its_last_chunk() {
    let mut trailers = HeaderMap::new();
    trailers.append("x-sum", HeaderValue::from_static("1"));
    trailers.append("x-sum", HeaderValue::from_static("2"));
    let sent = sent_with(Framing::Chunked, trailers.clone()).await;
    assert!(
        sent.contains("\r\ntransfer-encoding: chunked\r\n\r\n"),
        "{sent}"
    );
    assert!(
        sent.ends_with("\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\nx-sum: 2\r\n\r\n"),
        "{sent}"
    );
    // There is no place for them behind a body of a known length.
    let sent = sent_with(Framing::Length(5), trailers).await;
    assert!(sent.ends_with("content-length: 5\r\n\r\nhello"), "{sent}");
}

// P5.5: what a client may not say in headers it may not say in trailers either.
#[tokio::test(start_paused = true)]
async fn trailers_that_would_be_headers_are_dropped() {
    let mut trailers = HeaderMap::new();
    for name in [
        "content-length",
        "transfer-encoding",
        "host",
        "connection",
        "keep-alive",
        "trailer",
        "authorization",
        "cookie",
        "proxy-authorization",
        "proxy-connection",
        "x-forwarded-for",
        "pinboard-attestation",
        "pinboard-epoch",
        "pinned-refusal",
    ] {
        trailers.insert(name, HeaderValue::from_static("2"));
    }
    let sent = sent_with(Framing::Chunked, trailers).await;
    assert!(sent.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "{sent}");
}
