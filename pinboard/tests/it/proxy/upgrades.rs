//! Connections that become something else (P5.3).

use futures_util::{SinkExt as _, StreamExt as _};
use http::StatusCode;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

use super::rig::{Head, Peer, Rig, Worker, get, soon};

const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n";

fn upgrade(lines: &str) -> String {
    format!(
        "GET /rooms/alice HTTP/1.1\r\nHost: rooms.example\r\nConnection: Upgrade\r\nUpgrade: foo\r\n{lines}\r\n"
    )
}

/// A tunnel of no protocol in particular, and both its ends.
async fn tunnel(rig: &Rig, worker: &Worker) -> (Peer<TcpStream>, Peer<TcpStream>) {
    let mut client = rig.send(&upgrade("")).await;
    let (peer, _) = worker.answer(SWITCH).await;
    assert_eq!(client.head().await.status(), 101);
    (client, peer)
}

type Socket = WebSocketStream<TcpStream>;

/// A WebSocket, and both its ends.
async fn socket(rig: &Rig, worker: &Worker) -> (Socket, Socket) {
    let stream = TcpStream::connect(rig.address).await.expect("listens");
    let connecting = client_async("ws://rooms.example/rooms/alice/chat", stream);
    let (client, peer) = tokio::join!(connecting, async {
        accept_async(worker.accept().await.stream)
            .await
            .expect("a handshake")
    });
    (client.expect("a handshake").0, peer)
}

async fn next(socket: &mut Socket) -> Option<Result<Message, tungstenite::Error>> {
    soon("a message", socket.next()).await
}

/// The code of the close frame that comes next; `None` for one without.
async fn closed(socket: &mut Socket) -> Option<CloseCode> {
    match next(socket).await {
        Some(Ok(Message::Close(frame))) => frame.map(|frame| frame.code),
        other => panic!("no close frame: {other:?}"),
    }
}

async fn nothing_is_held(rig: &Rig) {
    soon("the end of all connections", async {
        while rig.server.connections().now > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_switch_keeps_what_it_says() {
    // "the 101 keeps `Upgrade`, `Connection`, `Sec-WebSocket-Protocol` and `-Extensions`"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig
        .send(&upgrade(
            "Sec-WebSocket-Protocol: chat, json\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\
             Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n",
        ))
        .await;
    let (mut peer, head) = worker
        .answer(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: upgrade, x-secret\r\nX-Secret: 1\r\n\
             Sec-WebSocket-Protocol: json\r\nSec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Accept: y\r\n\r\nhello",
        )
        .await;
    assert_eq!(head.header("connection"), Some("upgrade"));
    assert_eq!(head.header("upgrade"), Some("foo"));
    assert_eq!(head.header("sec-websocket-protocol"), Some("chat, json"));
    assert_eq!(head.header("sec-websocket-key"), Some("x"));
    let head = client.head().await;
    assert_eq!(head.status(), 101);
    assert_eq!(head.header("connection"), Some("upgrade"));
    assert_eq!(head.header("upgrade"), Some("foo"));
    assert_eq!(head.header("sec-websocket-protocol"), Some("json"));
    assert_eq!(
        head.header("sec-websocket-extensions"),
        Some("permessage-deflate")
    );
    assert_eq!(head.header("sec-websocket-accept"), Some("y"));
    assert_eq!(head.header("x-secret"), None);
    // What came behind it as well.
    client.expect("hello").await;
    // These are no requests, and not read as such.
    client.write("any\nbytes\0\r\r\n").await;
    peer.expect("any\nbytes\0\r\r\n").await;
}

#[tokio::test]
async fn a_refused_upgrade_keeps_its_body_and_its_connections() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig.send(&upgrade("")).await;
    let (mut peer, _) = worker
        .answer("HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\ncontent-length: 7\r\n\r\nnot you")
        .await;
    let (head, body) = client.response().await;
    assert_eq!((head.status(), &*body), (403, "not you"));
    assert_eq!(head.header("content-type"), Some("text/plain"));
    client.write(get("/rooms/alice")).await;
    peer.head().await;
    peer.write("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(client.head().await.status(), 204);
    // And is read strictly again.
    client
        .write("GET /rooms/alice HTTP/1.1\nHost: a\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 400);
}

#[tokio::test]
async fn what_came_too_early_for_a_refused_upgrade_is_no_request() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig.send(&(upgrade("") + &get("/rooms/smuggled"))).await;
    worker
        .answer("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        .await;
    let head = client.head().await;
    assert_eq!(
        (head.status(), head.header("connection")),
        (403, Some("close"))
    );
    assert_eq!(client.rest().await, b"");
    assert!(worker.is_left_alone());

    // Also when there is more of it than is ever read, and whoever sends it is not reset under the answer.
    let mut client = rig.send(&(upgrade("") + &get("/rooms/smuggled"))).await;
    let (mut peer, _) = worker.asked().await;
    client.write(vec![b'x'; 300_000]).await;
    peer.write("HTTP/1.1 403 Forbidden\r\ncontent-length: 7\r\n\r\nnot you")
        .await;
    client.write(vec![b'x'; 300_000]).await;
    assert_eq!(client.response().await.1, "not you");
    assert_eq!(client.rest().await, b"");

    drop(peer);

    // For one that is granted it is the tunnel's.
    let mut client = rig.send(&(upgrade("") + "early")).await;
    let (mut peer, _) = worker.answer(SWITCH).await;
    peer.expect("early").await;
    assert_eq!(client.head().await.status(), 101);
}

#[tokio::test]
async fn what_follows_the_body_of_an_upgrade_that_was_refused_before_its_end_is_read_strictly() {
    // Issue 4, hardening: a line that ends in a bare LF is read in two ways, wherever it comes.
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let mut client = rig.send(&(upgrade("Content-Length: 5\r\n") + "he")).await;
    let (mut peer, _) = worker.asked().await;
    peer.expect("he").await;
    peer.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")
        .await;
    assert_eq!(client.head().await.status(), 200);
    client.expect("2\r\nok\r\n").await;
    // The end of the body and what hides behind it, at once.
    client
        .write("lloGET /rooms/smuggled HTTP/1.1\nHost: a\r\n\r\n")
        .await;
    peer.expect("llo").await;
    peer.write("0\r\n\r\n").await;
    client.expect("0\r\n\r\n").await;
    assert_eq!(client.head().await.status(), 400);

    // What may be read is.
    let mut client = rig.send(&(upgrade("Content-Length: 5\r\n") + "he")).await;
    let mut head = peer.head().await;
    assert_eq!(head.header("content-length"), Some("5"));
    peer.expect("he").await;
    peer.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    client.head().await;
    client.write("llo".to_owned() + &get("/rooms/next")).await;
    peer.expect("llo").await;
    peer.write("0\r\n\r\n").await;
    client.expect("0\r\n\r\n").await;
    head = peer.head().await;
    assert!(head.text.starts_with("GET /rooms/next "), "{}", head.text);
}

#[tokio::test]
async fn http_2_in_clear_text_is_not_upgraded_to() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for protocols in ["h2c", "websocket, H2C", "HTTP/2.0"] {
        let mut client = rig
            .send(&format!(
                "GET /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: {protocols}\r\n\
                 HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n"
            ))
            .await;
        let (_, head) = worker
            .answer("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
            .await;
        assert_eq!(head.header("upgrade"), None);
        assert_eq!(head.header("http2-settings"), None);
        assert_eq!(client.head().await.status(), 204);
    }
    // Nor is a worker believed that switches without having been asked to.
    let mut client = rig.get("/rooms/alice").await;
    worker.answer(SWITCH).await;
    assert_eq!(client.head().await.status(), 502);
}

#[tokio::test]
async fn one_direction_may_end_before_the_other() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let (mut client, mut peer) = tunnel(&rig, &worker).await;
    client.write("question").await;
    client.finish().await;
    assert_eq!(peer.rest().await, b"question");
    peer.write("answer").await;
    drop(peer);
    assert_eq!(client.rest().await, b"answer");
    nothing_is_held(&rig).await;

    let (mut client, mut peer) = tunnel(&rig, &worker).await;
    peer.write("all").await;
    peer.finish().await;
    assert_eq!(client.rest().await, b"all");
    client.write("thanks").await;
    drop(client);
    assert_eq!(peer.rest().await, b"thanks");
    nothing_is_held(&rig).await;
}

#[tokio::test]
async fn a_client_that_goes_away_closes_the_workers_side_and_the_other_way_round() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let (client, mut peer) = socket(&rig, &worker).await;
    drop(client);
    assert!(!matches!(next(&mut peer).await, Some(Ok(_))));
    drop(peer);
    nothing_is_held(&rig).await;

    let (client, mut peer) = tunnel(&rig, &worker).await;
    client.stream.set_zero_linger().expect("a socket");
    drop(client);
    assert_eq!(peer.rest().await, b"");
    nothing_is_held(&rig).await;
}

#[tokio::test]
async fn messages_codes_and_reasons_arrive_unchanged() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let (mut client, mut peer) = socket(&rig, &worker).await;
    for length in [0, 1, 125, 126, 65_535, 65_536, 1_000_000] {
        let message = Message::binary(vec![7; length]);
        client.send(message.clone()).await.expect("open");
        assert_eq!(
            next(&mut peer).await.expect("open").expect("a message"),
            message
        );
        peer.send(message.clone()).await.expect("open");
        assert_eq!(
            next(&mut client).await.expect("open").expect("a message"),
            message
        );
    }
    let frame = tungstenite::protocol::CloseFrame {
        code: CloseCode::Library(4_321),
        reason: "because".into(),
    };
    peer.close(Some(frame.clone())).await.expect("open");
    let Some(Ok(Message::Close(Some(close)))) = next(&mut client).await else {
        panic!("no close frame");
    };
    assert_eq!(close, frame);

    // "a close frame without a code arrives as 'no status'"
    let (mut client, mut peer) = socket(&rig, &worker).await;
    peer.close(None).await.expect("open");
    assert_eq!(closed(&mut client).await, None);
    drop(peer);
    assert!(next(&mut client).await.is_none());
}

#[tokio::test]
async fn a_worker_that_drops_a_websocket_leaves_a_legal_close() {
    // "a worker that drops TCP without a close frame gives the client a legal WebSocket close within 1 s"
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for is_reset in [false, true] {
        let (mut client, mut peer) = socket(&rig, &worker).await;
        peer.send(Message::text("last words")).await.expect("open");
        assert_eq!(
            next(&mut client).await.expect("open").expect("a message"),
            Message::text("last words")
        );
        if is_reset {
            peer.get_ref().set_zero_linger().expect("a socket");
        }
        drop(peer);
        assert_eq!(closed(&mut client).await, Some(CloseCode::Error));
        assert!(next(&mut client).await.is_none(), "nothing after it");
        drop(client);
        nothing_is_held(&rig).await;
    }
    // Where no frame may stand, the connection ends.
    let (client, peer) = socket(&rig, &worker).await;
    let (mut client, mut peer) = (Peer::new(client.into_inner()), Peer::new(peer.into_inner()));
    peer.write([0x82, 5, b'h', b'a']).await;
    client.expect([0x82, 5, b'h', b'a']).await;
    drop(peer);
    assert_eq!(client.rest().await, b"");
}

#[tokio::test]
async fn a_slow_side_slows_down_the_other() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    let (mut client, peer) = tunnel(&rig, &worker).await;
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
    drop(peer);
    assert_eq!(client.rest().await.len(), sent);
}

#[tokio::test]
async fn large_heads_pass_and_larger_ones_are_refused() {
    // "upgrades with 300 B, 8 KB, 15 KB of cookies; above the limit 431, never a hang."
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for length in [300, 8 << 10, 15 << 10] {
        let cookie = "c".repeat(length);
        let mut client = rig.send(&upgrade(&format!("Cookie: {cookie}\r\n"))).await;
        let (_, head) = worker.answer(SWITCH).await;
        assert_eq!(head.header("cookie"), Some(&*cookie));
        assert_eq!(client.head().await.status(), 101);
    }
    for length in [33 << 10, 200 << 10] {
        let mut client = rig
            .send(&upgrade(&format!("Cookie: {}\r\n", "c".repeat(length))))
            .await;
        assert_eq!(client.head().await.status(), 431);
        assert_eq!(client.rest().await, b"");
    }
    let many: String = (0..120).map(|n| format!("X-{n}: y\r\n")).collect();
    let mut client = rig.send(&upgrade(&many)).await;
    assert_eq!(client.head().await.status(), 431);
    assert!(worker.is_left_alone());
}

#[tokio::test]
async fn an_upgrade_is_one_that_is_asked_for_as_such() {
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    for request in [
        // Not listed in `Connection`, over HTTP/1.0, with a body, twice.
        "GET /rooms/alice HTTP/1.1\r\nHost: a\r\nUpgrade: foo\r\n\r\n",
        "GET /rooms/alice HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n",
        "POST /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: foo\r\nContent-Length: 1\r\n\r\nx",
        "GET /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: foo\r\nUpgrade: bar\r\n\r\n",
    ] {
        let mut client = rig.send(request).await;
        let (_, head): (_, Head) = worker
            .answer("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
            .await;
        assert_eq!(head.header("upgrade"), None, "{request}");
        assert_eq!(client.head().await.status(), StatusCode::NO_CONTENT);
    }
}
