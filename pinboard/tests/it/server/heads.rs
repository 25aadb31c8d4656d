//! Bounds on heads and connections (P5.12).

use std::time::Duration;

use pinboard::server::ServerOptions;
use tokio::io::DuplexStream;

use crate::proxy::rig::{Peer, Plan, Rig, get, says};

/// A client at the other end of a pipe, on a clock that jumps.
fn piped(rig: &Rig) -> Peer<DuplexStream> {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let server = rig.server.clone();
    rig.domain.spawn(async move {
        let peer = ([192, 0, 2, 1], 4711).into();
        server.serve_connection(0, theirs, peer).await;
    });
    Peer::new(ours)
}

async fn ended_after(rig: &Rig, client: &mut Peer<DuplexStream>) -> Duration {
    let began = rig.domain.monotonic();
    // Longer than a test waits for anything else.
    let mut rest = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut client.stream, &mut rest).await;
    assert_eq!(rest, b"");
    rig.domain.monotonic() - began
}

fn about(took: Duration, seconds: u64) -> bool {
    let expected = Duration::from_secs(seconds);
    took >= expected && took <= expected + Duration::from_secs(3)
}

#[tokio::test(start_paused = true)]
async fn a_head_that_takes_too_long_ends_its_connection() {
    // P5.12: "request headers 30 s (slow-loris)"
    let rig = Rig::new().await;
    for head in [
        "",
        "P",
        "PRI * HTTP/2.0\r\n\r\n",
        "GET /rooms/alice HTTP/1.1\r\nX: ",
    ] {
        let mut client = piped(&rig);
        client.write(head).await;
        let took = ended_after(&rig, &mut client).await;
        assert!(about(took, 30), "{head:?}: {took:?}");
    }
    // Sending a byte now and then does not help.
    let mut client = piped(&rig);
    client.write("GET /rooms/alice HTTP/1.1\r\nX: ").await;
    let began = rig.domain.monotonic();
    while tokio::io::AsyncWriteExt::write_all(&mut client.stream, b"y")
        .await
        .is_ok()
    {
        rig.domain.sleep(Duration::from_secs(2)).await;
    }
    let took = rig.domain.monotonic() - began;
    assert!(about(took, 30), "{took:?}");
    // Neither does an answer before it.
    let mut client = piped(&rig);
    client.write(get("/healthz") + "GET /").await;
    client.response().await;
    let took = ended_after(&rig, &mut client).await;
    assert!(about(took, 30), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_for_a_while_without_a_request() {
    let rig = Rig::new().await;
    let mut client = piped(&rig);
    for _ in 0..3 {
        client.write(get("/healthz")).await;
        client.response().await;
        rig.domain.sleep(Duration::from_secs(60)).await;
    }
    client.write(get("/healthz")).await;
    client.response().await;
    let took = ended_after(&rig, &mut client).await;
    assert!(about(took, 75), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn empty_lines_keep_nothing_alive() {
    let rig = Rig::new().await;
    let mut client = piped(&rig);
    client.write(get("/healthz")).await;
    client.response().await;
    let began = rig.domain.monotonic();
    while tokio::io::AsyncWriteExt::write_all(&mut client.stream, b"\r\n")
        .await
        .is_ok()
    {
        rig.domain.sleep(Duration::from_secs(2)).await;
    }
    let took = rig.domain.monotonic() - began;
    assert!(about(took, 75), "{took:?}");
}

#[tokio::test]
async fn heads_are_bounded_in_bytes_and_in_number() {
    let rig = Rig::new().await;
    let with = |lines: &str| format!("GET /healthz HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let numbered = |n| -> String { (0..n).map(|n| format!("x{n}: y\r\n")).collect() };
    let long = |n| format!("x: {}\r\n", "y".repeat(n));
    for (lines, status) in [
        (numbered(99), 200),
        (numbered(100), 431),
        (numbered(5_000), 431),
        (long(31 << 10), 200),
        (long(33 << 10), 431),
        (long(1 << 20), 431),
    ] {
        let mut client = rig.connect().await;
        // It may be refused before all of it is written.
        let head = with(&lines);
        let _ = tokio::io::AsyncWriteExt::write_all(&mut client.stream, head.as_bytes()).await;
        assert_eq!(
            client.head().await.status(),
            status,
            "{} bytes",
            lines.len()
        );
    }
    let target = format!("/healthz?{}", "x".repeat(20 << 10));
    assert_eq!(rig.get(&target).await.head().await.status(), 200);
}

#[tokio::test]
async fn there_are_so_many_connections_and_no_more() {
    // P5.12: "at most `PINBOARD_MAX_CONNECTIONS` held, above that 503"
    let mut options = ServerOptions::default();
    options.max_connections = 2;
    let plan = Plan {
        options,
        ..Plan::default()
    };
    let rig = Rig::planned(plan).await;
    let worker = rig.worker("a").await;
    let mut first = rig.get("/healthz").await;
    first.response().await;
    // One that is upgraded counts as well.
    let mut second = rig
        .send("GET /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n")
        .await;
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n";
    let (mut peer, _) = worker.answer(switch).await;
    assert_eq!(second.head().await.status(), 101);
    let mut third = rig.get("/healthz").await;
    let (head, body) = third.response().await;
    assert_eq!(
        (head.status(), head.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(head.header("connection"), Some("close"));
    assert!(says(&body, "too many connections"));
    assert_eq!(third.rest().await, b"");
    assert_eq!(rig.server.connections().now, 2);

    // Those that are there are served, and make room when they go.
    first.write(get("/healthz")).await;
    assert_eq!(first.response().await.0.status(), 200);
    drop(second);
    assert_eq!(peer.rest().await, b"");
    drop(peer);
    loop {
        let mut again = rig.get("/healthz").await;
        if again.response().await.0.status() == 200 {
            break;
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_without_a_word_is_let_go() {
    let rig = Rig::new().await;
    let mut client = rig.connect().await;
    client.finish().await;
    assert_eq!(client.rest().await, b"");
    let mut client = rig.connect().await;
    client.write("GET /").await;
    client.finish().await;
    client.rest().await;
    // An end after a whole request is one of the client's: nobody waits for the answer.
    drop(client);
}
