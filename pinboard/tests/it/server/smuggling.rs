//! Bytes that can be read in two ways are not read at all.

use crate::proxy::rig::{Rig, get};

/// What a front that reads these bytes in another way would have hidden in them.
const HIDDEN: &str = "GET /rooms/hidden HTTP/1.1\r\nHost: a\r\n\r\n";

async fn is_refused(rig: &Rig, request: &str, status: u16) {
    let mut client = rig.connect().await;
    client.write(format!("{request}{HIDDEN}")).await;
    let rest = client.rest().await;
    let rest = String::from_utf8_lossy(&rest);
    let expected = format!("HTTP/1.1 {status} ");
    assert!(rest.starts_with(&expected), "{request:?}: {rest}");
    assert_eq!(rest.matches("HTTP/1.1").count(), 1, "{request:?}: {rest}");
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_refused() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let line = "POST /rooms/alice HTTP/1.1\r\nHost: a\r\n";
    for headers in [
        // A length that is said twice, or is none.
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "Content-Length: 5, 5\r\n\r\nhello",
        "Content-Length: +5\r\n\r\nhello",
        "Content-Length: -5\r\n\r\nhello",
        "Content-Length: 0x5\r\n\r\nhello",
        "Content-Length: 5 5\r\n\r\nhello",
        "Content-Length: 99999999999999999999\r\n\r\nhello",
        "Content-Length:\r\n\r\nhello",
        // A coding beside a length, or one that is not understood.
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: identity\r\n\r\n",
        "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked;x\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding:\r\n\r\n",
        // Names and lines.
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "Content-Length : 5\r\n\r\nhello",
        " Content-Length: 5\r\n\r\nhello",
        "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "X: y\r\n\tz\r\n\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "X: y\r\r\n\r\n",
        "X: y\0z\r\n\r\n",
        "X y\r\n\r\n",
        "X(: y\r\n\r\n",
        ": y\r\n\r\n",
        "X: y\r\n\n",
        "X: y\n\n",
    ] {
        is_refused(&rig, &format!("{line}{headers}"), 400).await;
    }
    for request in [
        "GET /rooms/alice HTTP/1.1\nHost: a\r\n\r\n",
        "GET /rooms/alice  HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /rooms/alice HTTP/1.1 \r\nHost: a\r\n\r\n",
        "GET /rooms/alice#x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /rooms/al\tice HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /rooms/alice\r\nHost: a\r\n\r\n",
        "GET /rooms/alice HTTP/1.2\r\nHost: a\r\n\r\n",
        "GET /rooms/alice HTTP/2.0\r\nHost: a\r\n\r\n",
        "GE(T /rooms/alice HTTP/1.1\r\nHost: a\r\n\r\n",
        "\nGET /rooms/alice HTTP/1.1\r\nHost: a\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        "POST /rooms/alice HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        is_refused(&rig, request, 400).await;
    }
    assert!(worker.is_left_alone());
}

#[tokio::test]
async fn heads_that_come_in_pieces_are_read_no_less_strictly() {
    let rig = Rig::new().await;
    let mut client = rig.connect().await;
    for piece in [
        "GET /rooms/alice HT",
        "TP/1.1\r",
        "\nHost: a\r\nX: y",
        "\nZ: w\r\n\r\n",
    ] {
        client.write(piece).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.head().await.status(), 400);
    assert_eq!(client.rest().await, b"");
}

#[tokio::test]
async fn chunks_that_can_be_read_in_two_ways_break_the_request_off() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for body in [
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "x\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "5;\nx\r\nhello\r\n0\r\n\r\n",
        "ffffffffffffffff1\r\nhello",
        "0\r\nX: y\n\r\n",
        "0\r\n\n",
    ] {
        let mut client = rig
            .send("POST /rooms/alice HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
            .await;
        let (mut peer, _) = worker.asked().await;
        peer.expect("2\r\nok\r\n").await;
        client.write(format!("{body}{HIDDEN}")).await;
        let got = peer.rest().await;
        let got = String::from_utf8_lossy(&got);
        assert!(
            !got.contains("hidden") && !got.ends_with("0\r\n\r\n"),
            "{body:?}: {got}"
        );
        let answer = client.rest().await;
        assert!(
            !String::from_utf8_lossy(&answer).contains("HTTP/1.1 200"),
            "{body:?}"
        );
        assert!(worker.is_left_alone(), "{body:?}");
    }
}

#[tokio::test]
async fn requests_that_follow_each_other_are_told_apart() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig
        .send(
            "POST /rooms/alice/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n\n\n\n\r\n0\r\nX: y\r\n\r\n\
             POST /rooms/alice/2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n\n#\n\r\n\
             GET /rooms/alice/3 HTTP/1.1\r\nHost: a\r\n\r\n",
        )
        .await;
    let mut peer = worker.accept().await;
    for (target, body) in [
        ("/1", &b"3\r\n\n\n\n\r\n0\r\n"[..]),
        ("/2", b"\n#\n"),
        ("/3", b""),
    ] {
        let head = peer.head().await;
        assert!(
            head.first_line()
                .contains(&format!("/rooms/alice{target} ")),
            "{}",
            head.text
        );
        peer.expect(body).await;
        if target == "/1" {
            peer.expect("x: y\r\n\r\n").await;
        }
        peer.write("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(client.head().await.status(), 204);
    }
    // What is wrong with a later one does not undo what was answered before.
    client
        .write(get("/rooms/alice") + "GET /x HTTP/1.1\nHost: a\r\n\r\n")
        .await;
    peer.head().await;
    peer.write("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(client.head().await.status(), 204);
    assert_eq!(client.head().await.status(), 400);
    assert_eq!(client.rest().await, b"");
}

#[tokio::test]
async fn an_answer_cannot_be_split_by_what_a_worker_says() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for answer in [
        "HTTP/1.1 200 OK\r\nX: y\rz\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y\0\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let mut client = rig.get("/rooms/alice").await;
        worker.answer(answer).await;
        assert_eq!(client.head().await.status(), 502, "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_without_content_says_no_length() {
    // Issue 4, hardening: whoever believes it reads the next answer as a body (RFC 9110, 8.6).
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for method in ["GET", "HEAD"] {
        let mut client = rig.send(&get("/rooms/alice").replace("GET", method)).await;
        worker
            .answer("HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n")
            .await;
        let head = client.head().await;
        assert_eq!((head.status(), head.header("content-length")), (204, None));
    }
}
