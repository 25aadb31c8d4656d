//! Bodies, both ways (P5.2).

use std::time::Duration;

use super::footprint::{alone, resident};
use super::rig::{Plan, Rig, get, says, soon};

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn events_arrive_one_by_one() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig.get("/rooms/alice/events").await;
    let (mut peer, _) = worker.answer(CHUNKED).await;
    let head = client.head().await;
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
        assert!(client.is_silent());
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        peer.write(&chunk).await;
        client.expect(&chunk).await;
    }
    peer.write("0\r\n\r\n").await;
    client.expect("0\r\n\r\n").await;
    // And the connections are there for more.
    client.write(get("/rooms/alice")).await;
    peer.head().await;
}

#[tokio::test]
async fn a_body_reaches_the_worker_as_it_comes() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig
        .send("POST /rooms/alice HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n")
        .await;
    let (mut peer, head) = worker.asked().await;
    assert_eq!(head.header("content-length"), Some("6"));
    assert_eq!(head.header("transfer-encoding"), None);
    client.write("abc").await;
    peer.expect("abc").await;
    client.write("def").await;
    peer.expect("def").await;
    peer.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 200);

    // In chunks, and on the same connections.
    client
        .write("POST /rooms/alice HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        .await;
    let head = peer.head().await;
    assert_eq!(head.header("content-length"), None);
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    peer.expect("3\r\nabc\r\n").await;
    client.write("0\r\n\r\n").await;
    peer.expect("0\r\n\r\n").await;
    peer.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 200);
    // One without a body says so if the client said so.
    client
        .write("POST /rooms/alice HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert_eq!(peer.head().await.header("content-length"), Some("0"));
}

#[tokio::test]
async fn trailers_pass_where_they_were_announced_and_break_nothing_where_they_were_not() {
    // "a streamed response with an unannounced trailer, over HTTP/1.1 and HTTP/2"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let request = "POST /rooms/alice HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\nTrailer: x-sum\r\n\
                   Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n";
    let mut client = rig.send(request).await;
    let (mut peer, head) = worker.asked().await;
    assert_eq!(head.header("te"), Some("trailers"));
    assert_eq!(head.header("trailer"), Some("x-sum"));
    peer.expect("2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n").await;
    peer.write("HTTP/1.1 200 OK\r\nTrailer: x-end\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    assert_eq!(client.head().await.header("trailer"), Some("x-end"));
    peer.write("2\r\nok\r\n0\r\nx-end: 2\r\n\r\n").await;
    client.expect("2\r\nok\r\n0\r\nx-end: 2\r\n\r\n").await;

    // Not announced: an HTTP/1.1 client does not get it (RFC 9110, 6.5.1 lets it be dropped), and the next request works.
    client
        .write(request.replace("Trailer: x-sum\r\n", ""))
        .await;
    let head = peer.head().await;
    assert_eq!(head.header("trailer"), None);
    peer.expect("2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n").await;
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    client.head().await;
    peer.write("2\r\nok\r\n0\r\nx-end: 2\r\n\r\n").await;
    client.expect("2\r\nok\r\n0\r\n\r\n").await;
    client.write(get("/rooms/alice")).await;
    peer.head().await;
}

#[tokio::test]
async fn a_client_is_told_to_go_on_once_and_only_when_its_body_is_wanted() {
    // "`Expect: 100-continue`: exactly one 100, then the body, then 200"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let request = "POST /rooms/alice HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut client = rig.send(request).await;
    let (mut peer, head) = worker.asked().await;
    assert_eq!(head.header("expect"), Some("100-continue"));
    assert!(client.is_silent());
    peer.write("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.write("hi").await;
    peer.expect("hi").await;
    peer.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 200);

    // "a handler that refuses before reading gives 413 and no 100"
    let mut client = rig.send(request).await;
    peer.head().await;
    peer.write("HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig")
        .await;
    let (head, body) = client.response().await;
    assert_eq!((head.status(), &*body), (413, "big"));
    assert_eq!(client.rest().await, b"");
}

#[tokio::test]
async fn an_early_answer_passes_while_the_body_is_still_being_sent() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig
        .send("POST /rooms/alice HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc")
        .await;
    let (mut peer, _) = worker.asked().await;
    peer.expect("abc").await;
    peer.write(
        "HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 3\r\n\r\nbig",
    )
    .await;
    let (head, body) = client.response().await;
    assert_eq!((head.status(), &*body), (413, "big"));
    // It is not reset under what it has not read yet: what it sends is taken for a moment.
    client.write(vec![b'x'; 100_000]).await;
    assert_eq!(client.rest().await, b"");
    peer.rest().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_not_look_whole() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig.get("/rooms/alice").await;
    let (mut peer, _) = worker.answer(CHUNKED).await;
    client.head().await;
    peer.write("2\r\nhi\r\n").await;
    client.expect("2\r\nhi\r\n").await;
    drop(peer);
    assert_eq!(client.rest().await, b"", "no last chunk");

    let mut client = rig.get("/rooms/alice").await;
    let (mut peer, _) = worker
        .answer("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhi")
        .await;
    client.head().await;
    client.expect("hi").await;
    peer.finish().await;
    assert_eq!(client.rest().await, b"");
}

#[tokio::test]
async fn a_client_that_leaves_ends_what_is_done_for_it_alone() {
    // "a client leaves before the first response byte, after the headers, and in mid-stream: upstream work that only
    // served it ends, gauges return to 0."
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let client = rig.get("/rooms/alice").await;
    let (mut peer, _) = worker.asked().await;
    drop(client);
    assert_eq!(peer.rest().await, b"");

    let mut client = rig.get("/rooms/alice").await;
    let (mut peer, _) = worker.answer(CHUNKED).await;
    client.head().await;
    drop(client);
    assert_eq!(peer.rest().await, b"");

    let mut client = rig.get("/rooms/alice").await;
    let (mut peer, _) = worker.answer(CHUNKED).await;
    client.head().await;
    peer.write("2\r\nhi\r\n").await;
    client.expect("2\r\nhi\r\n").await;
    drop(client);
    assert_eq!(peer.rest().await, b"");

    // While its body is being sent.
    let client = rig
        .send("POST /rooms/alice HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
        .await;
    let (mut peer, _) = worker.asked().await;
    peer.expect("abc").await;
    drop(client);
    assert_eq!(peer.rest().await, b"");
    soon("nothing is left", async {
        while rig.server.connections().now > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(rig.server.connections().total, 4);
}

#[tokio::test]
async fn a_client_that_leaves_more_behind_than_is_read_is_missed_all_the_same() {
    // "a client leaves before the first response byte, after the headers, and in mid-stream: upstream work that only served it
    // ends": also where its end is behind bytes that nobody reads.
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for (request, has_begun) in [
        (get("/rooms/alice") + &get("/rooms/bob"), false),
        (get("/rooms/alice") + &get("/rooms/bob"), true),
        (get("/rooms/alice") + "G", false),
        (
            "GET /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\nearly".into(),
            false,
        ),
    ] {
        let mut client = rig.send(&request).await;
        let (mut peer, _) = worker.asked().await;
        if has_begun {
            peer.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                .await;
            assert_eq!(client.head().await.status(), 200);
        }
        drop(client);
        peer.rest().await;
        soon("no connections", async {
            while rig.server.connections().now > 0 {
                rig.domain.sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_slow_reader_holds_up_its_own_stream_only() {
    // "256 MB up in 64 KB chunks against a slow reader: the first chunk reaches the handler before the last is sent;
    // resident memory grows by less than 32 MB."
    const CHUNK: usize = 64 << 10;
    const CHUNKS: usize = (256 << 20) / CHUNK;
    if !alone("proxy::bodies::a_slow_reader_holds_up_its_own_stream_only") {
        return;
    }
    let rig = Rig::planned(Plan::default()).await;
    let worker = rig.worker("a").await;
    let mut client = rig
        .send(&format!(
            "POST /rooms/alice HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
            CHUNK * CHUNKS
        ))
        .await;
    let (mut peer, _) = worker.asked().await;
    let before = resident();
    let (mut read, mut write) = client.stream.split();
    let chunk = vec![b'x'; CHUNK];
    let mut sent = 0;
    {
        use tokio::io::AsyncWriteExt as _;
        // Until nobody takes any more: then it lies in sockets, and in one buffer or two.
        let mut blocked = 0;
        while blocked < 50 {
            tokio::select! {
                biased;
                written = write.write(&chunk) => {
                    sent += written.expect("open");
                    blocked = 0;
                }
                () = tokio::task::yield_now() => blocked += 1,
            }
        }
        assert!(sent < CHUNK * CHUNKS / 4, "{sent} bytes were taken");
        peer.read(CHUNK).await;
        // Another client is served meanwhile.
        let mut other = rig.get("/rooms/alice").await;
        let (_, head) = worker.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(head.first_line(), "GET /rooms/alice HTTP/1.1");
        assert_eq!(other.head().await.status(), 204);
        let sending = async {
            let mut left = CHUNK * CHUNKS - sent;
            while left > 0 {
                left -= write.write(&chunk[..left.min(CHUNK)]).await.expect("open");
            }
        };
        let reading = async {
            for _ in 1..CHUNKS {
                peer.read(CHUNK).await;
            }
            peer.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .await;
        };
        tokio::join!(sending, reading);
    }
    let mut answer = [0; 12];
    {
        use tokio::io::AsyncReadExt as _;
        read.read_exact(&mut answer).await.expect("an answer");
    }
    assert_eq!(&answer, b"HTTP/1.1 200");
    let grown = resident().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more");
}

#[tokio::test]
async fn a_slow_client_slows_down_its_worker() {
    // "a slow reader slows only its own worker stream"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig
        .send("GET /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await;
    let (peer, _) = worker.answer("HTTP/1.1 200 OK\r\n\r\n").await;
    client.head().await;
    let chunk = [7; 64 << 10];
    let (mut sent, mut waits) = (0, 0);
    while waits < 50 {
        match peer.stream.try_write(&chunk) {
            Ok(written) => (sent, waits) = (sent + written, 0),
            Err(_) => {
                waits += 1;
                tokio::task::yield_now().await;
            }
        }
        assert!(sent < 64 << 20, "{sent} bytes were taken");
    }
    let (_, body) = rig.get("/healthz").await.response().await;
    assert!(body.contains("healthz"), "others are served meanwhile");
    drop(peer);
    let rest = client.rest().await;
    let data = rest.iter().filter(|byte| **byte == 7).count();
    assert_eq!(data, sent);
    assert!(rest.ends_with(b"0\r\n\r\n"));
}

#[tokio::test]
async fn a_coding_that_is_not_understood_is_refused() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig
        .send("POST /rooms/alice HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 400);
    assert!(worker.is_left_alone());
    let mut client = rig
        .send("POST /rooms/a$ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd")
        .await;
    let (head, body) = client.response().await;
    assert_eq!(head.status(), 400);
    assert!(says(&body, "id must contain only [A-Za-z0-9._~-]"));
}
