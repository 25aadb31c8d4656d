//! Where a response ends (RFC 9112, 6.3).

use http::StatusCode;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use pinboard::upstream::{ExchangeErrorKind, Framing};

use super::rig::{Peer, Rig, broken, data, get, none, request, text};

/// The response to `method`, whether its connection may be used again, and what it says it is before it is read.
async fn exchange(method: &str, response: &str) -> (StatusCode, Option<u64>, String, bool) {
    let mut rig = Rig::new();
    let sent = rig
        .backend
        .send(0, request(method, "/", Framing::None), none());
    let (reply, _peer) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write(response).await;
        if response.contains("(eof)") {
            // Nothing comes after what was written.
            return None;
        }
        Some(peer)
    });
    let reply = reply.expect("a reply");
    let size = reply.body.size_hint().exact();
    let body = text(reply.body).await;
    (reply.status, size, body, rig.backend.idle() == 1)
}

#[tokio::test(start_paused = true)]
async fn a_response_without_a_body_ends_with_its_head() {
    for (method, response) in [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        ("HEAD", "HTTP/1.1 200 OK\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        ("GET", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        ("GET", "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n"),
    ] {
        let (_, size, body, is_reusable) = exchange(method, response).await;
        assert_eq!(
            (size, body.as_str(), is_reusable),
            (Some(0), "", true),
            "{response}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_ends_where_its_framing_says() {
    for (response, size, body) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length:5\r\n\r\nhello",
            Some(5),
            "hello",
        ),
        (
            "HTTP/1.1 404 No\r\ncontent-length: \t5 \t\r\n\r\nhello",
            Some(5),
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 0005\r\n\r\nhello",
            Some(5),
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n02\r\nlo\r\n0\r\n\r\n",
            None,
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=\"b\";c\r\nhello\r\n000;x\r\n\r\n",
            None,
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nA\r\n0123456789\r\na\r\n9876543210\r\n0\r\n\r\n",
            None,
            "01234567899876543210",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            Some(0),
            "",
        ),
    ] {
        let outcome = exchange("GET", response).await;
        let expected = (
            StatusCode::from_u16(outcome.0.as_u16()).expect("one"),
            size,
            body.to_owned(),
            true,
        );
        assert_eq!(outcome, expected, "{response}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_any_framing_a_body_ends_with_its_connection() {
    let (status, size, body, is_reusable) =
        exchange("GET", "HTTP/1.1 201 Created\r\n\r\nall there is (eof)").await;
    assert_eq!((status, size), (StatusCode::CREATED, None));
    assert_eq!((body.as_str(), is_reusable), ("all there is (eof)", false));
    let (_, _, body, _) = exchange("GET", "HTTP/1.0 200 OK\r\n\r\n(eof)").await;
    assert_eq!(body, "(eof)");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_an_error() {
    for (response, before) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", ""),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell", "hell"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", ""),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5", ""),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhell",
            "hell",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello",
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\na: b\r\n",
            "hello",
        ),
    ] {
        let mut rig = Rig::new();
        let reply = rig.get(response.as_bytes()).await.expect("a reply");
        let (read, error) = broken(reply.body).await;
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::UnexpectedEof,
            "{response}"
        );
        assert_eq!(read, before.as_bytes(), "{response}");
        assert_eq!(rig.backend.idle(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_breaks_off_is_an_error() {
    for response in [
        "",
        "HTTP/1.1",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n\r",
    ] {
        let mut rig = Rig::new();
        let error = rig.get(response.as_bytes()).await.expect_err("no head");
        assert_eq!(error.kind, ExchangeErrorKind::Reset, "{response}");
        assert!(error.may_have_reached);
    }
}

// P5.2: server-sent events arrive chunk by chunk.
#[tokio::test(start_paused = true)]
async fn what_a_worker_has_sent_is_there_before_more_comes() {
    let mut rig = Rig::new();
    let sent = rig.backend.send(0, get("/"), none());
    let (reply, mut peer) = tokio::join!(sent, async {
        let mut peer = Peer::new(rig.accepted.recv().await.expect("a connection"));
        peer.head().await;
        peer.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        peer
    });
    let mut body = reply.expect("a reply").body;
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        assert!(futures_util::poll!(body.frame()).is_pending());
        peer.write(format!("{:x}\r\n{event}\r\n", event.len()))
            .await;
        assert_eq!(data(&mut body).await, event);
    }
    peer.write("0\r\n\r\n").await;
    assert!(body.frame().await.is_none());
    assert_eq!(rig.backend.idle(), 1);
}

#[tokio::test(start_paused = true)]
async fn headers_arrive_as_they_came() {
    let mut rig = Rig::new();
    let response = "HTTP/1.1 299 Whatever You Say\r\nX-One: a\r\nset-cookie: b=1\r\nSet-Cookie: c=2\r\n\
        x-empty:\r\nx-latin: caf\u{e9}\r\ncontent-length: 0\r\n\r\n";
    let latin: Vec<u8> = response.chars().map(|char| char as u8).collect();
    let reply = rig.get(&latin).await.expect("a reply");
    assert_eq!(reply.status.as_u16(), 299);
    let cookies: Vec<_> = reply.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["b=1", "c=2"]);
    assert_eq!(reply.headers["x-one"], "a");
    assert_eq!(reply.headers["x-empty"], "");
    assert_eq!(reply.headers["x-latin"].as_bytes(), b"caf\xe9");
}

#[tokio::test(start_paused = true)]
async fn a_head_may_be_large_and_have_many_headers() {
    let mut response = String::from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n");
    for n in 0..255 {
        response += &format!("x-{n}: {}\r\n", "v".repeat(200));
    }
    response += "\r\nok";
    assert!(response.len() > 50 << 10);
    let mut rig = Rig::new();
    let reply = rig.get(response.as_bytes()).await.expect("a reply");
    assert_eq!(reply.headers.len(), 256);
    assert_eq!(text(reply.body).await, "ok");
}
