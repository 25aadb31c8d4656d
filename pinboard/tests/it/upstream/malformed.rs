//! What is not an HTTP/1.1 response, or could be read in more than one way.

use pinboard::upstream::ExchangeErrorKind;

use super::rig::{Rig, broken};

async fn is_refused(response: &[u8]) {
    let mut rig = Rig::new();
    let shown = response.escape_ascii().to_string();
    let error = rig.get(response).await.expect_err(&shown);
    assert_eq!(error.kind, ExchangeErrorKind::Malformed, "{shown}");
    // P5.11: the request was written.
    assert!(error.may_have_reached, "{shown}");
    assert_eq!(rig.backend.idle(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_head_is_refused() {
    for response in [
        "\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        " HTTP/1.1 200 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\0\0\0",
        "http/1.1 200 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 +20 OK\r\n\r\n",
        "HTTP/1.1 200 O\0K\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ] {
        is_refused(response.as_bytes()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lines_that_others_may_see_otherwise_are_refused() {
    for lines in [
        "a: b\n",
        "a: b\n\r\n",
        "\n",
        "a: b\r\n\n",
        "a: b\r\r\n",
        "a: b\rc: d\r\n",
        "a: b\r\n c\r\n",
        "a: b\r\n\tc\r\n",
        " a: b\r\n",
        "a : b\r\n",
        "a\r\n",
        ": b\r\n",
        "a\0: b\r\n",
        "a: b\0\r\n",
        "a: \x01\r\n",
        "a: \x7f\r\n",
        "caf\u{e9}: b\r\n",
        "a b: c\r\n",
        "(a): c\r\n",
    ] {
        is_refused(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").as_bytes()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_framing_that_can_be_read_in_two_ways_is_refused() {
    for lines in [
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: 5\r\nContent-Length: 5\r\n",
        "content-length: 5, 5\r\n",
        "content-length: 5,6\r\n",
        "content-length: +5\r\n",
        "content-length: -5\r\n",
        "content-length: 0x5\r\n",
        "content-length: 5 5\r\n",
        "content-length: 5;\r\n",
        "content-length:\r\n",
        "content-length: five\r\n",
        "content-length: \u{665}\r\n",
        "content-length: 18446744073709551616\r\n",
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked, chunked\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: \x0bchunked\r\n",
        "transfer-encoding: chunked;a=b\r\n",
        "transfer-encoding:\r\n",
    ] {
        is_refused(format!("HTTP/1.1 200 OK\r\n{lines}\r\nhello").as_bytes()).await;
    }
    is_refused(b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n").await;
    is_refused(b"HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n").await;
    is_refused(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n")
        .await;
}

// P5.12: header bytes and count bounded.
#[tokio::test(start_paused = true)]
async fn a_head_longer_than_it_may_be_is_refused() {
    let lines = "x: y\r\n".repeat(257);
    is_refused(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").as_bytes()).await;
    let long = "y".repeat(64 << 10);
    is_refused(format!("HTTP/1.1 200 OK\r\nx: {long}\r\n\r\n").as_bytes()).await;
    // Without an end, too: it is not waited for.
    is_refused(format!("HTTP/1.1 200 OK\r\nx: {long}").as_bytes()).await;
    is_refused(format!("HTTP/1.1 200 {long}").as_bytes()).await;
}

#[tokio::test(start_paused = true)]
async fn chunks_that_are_none_break_the_body_off() {
    let long = "x".repeat(1 << 10);
    let many = "a: b\r\n".repeat(65);
    let big = format!("a: {}\r\n", "b".repeat(16 << 10));
    for chunks in [
        "\r\n",
        "x\r\n",
        "5\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "5 ;a\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5h\r\nhello\r\n0\r\n\r\n",
        ";a\r\nhello\r\n0\r\n\r\n",
        "5\r\r\nhello\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        "5;a\0b\r\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "00000000000000005\r\nhello\r\n0\r\n\r\n",
        "10000000000000000\r\nhello\r\n0\r\n\r\n",
        &format!("5;{long}\r\nhello\r\n0\r\n\r\n"),
        &format!("5;{long}"),
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello \r\n0\r\n\r\n",
        "5\r\nhello\r0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\n",
        "5\r\nhello\r\n0\r\nX\r\n\r\n",
        "5\r\nhello\r\n0\r\na: b\n\r\n",
        "5\r\nhello\r\n0\r\na: b\r\n c\r\n\r\n",
        "5\r\nhello\r\n0\r\na: b\rc\r\n\r\n",
        &format!("0\r\n{many}\r\n"),
        &format!("0\r\n{big}\r\n"),
        &format!("0\r\n{big}"),
    ] {
        let mut rig = Rig::new();
        let response = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        let reply = rig.get(response.as_bytes()).await.expect("a reply");
        let (before, error) = broken(reply.body).await;
        let shown = chunks.escape_debug();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{shown}");
        assert!(before.is_empty() || before == b"hello", "{shown}");
        assert_eq!(rig.backend.idle(), 0);
    }
}
