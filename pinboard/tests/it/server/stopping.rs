//! How a server stops (P1.6).

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use pinboard::server::ServerOptions;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{accept_async, client_async};

use crate::proxy::rig::{Plan, Rig, get, soon};

async fn rig(grace: Duration, drain: Duration) -> Rig {
    let mut options = ServerOptions::default();
    (options.grace, options.drain) = (grace, drain);
    let plan = Plan {
        options,
        ..Plan::default()
    };
    Rig::planned(plan).await
}

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn readiness_turns_first_and_new_connections_are_still_answered() {
    // P1.6
    let rig = rig(LONG, LONG).await;
    assert_eq!(rig.get("/readyz").await.head().await.status(), 200);
    let mut stopping = Box::pin(rig.server.stop());
    assert!(stopping.as_mut().now_or_never().is_none());
    assert_eq!(rig.get("/readyz").await.head().await.status(), 503);
    assert_eq!(rig.get("/healthz").await.head().await.status(), 200);
}

#[tokio::test]
async fn what_has_begun_is_finished_and_then_all_is_over() {
    // P1.6: "open requests and tunnels get up to 30 s"
    let rig = rig(SHORT, LONG).await;
    let worker = rig.worker("a").await;
    // Idle, with a request under way, and with half a request.
    let mut idle = rig.get("/healthz").await;
    idle.response().await;
    let mut busy = rig.get("/rooms/alice").await;
    let (mut peer, _) = worker.asked().await;
    let mut stream = rig.get("/rooms/alice/events").await;
    let (mut events, _) = worker
        .answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    stream.head().await;
    let mut tunnel = rig
        .send("GET /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n")
        .await;
    let (mut other, _) = worker
        .answer("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n")
        .await;
    tunnel.head().await;

    let stopping = rig.server.stop();
    let rest = async {
        assert_eq!(idle.rest().await, b"", "told goodbye");
        peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await;
        let (head, body) = busy.response().await;
        assert_eq!((head.header("connection"), &*body), (Some("close"), "ok"));
        assert_eq!(busy.rest().await, b"");
        events.write("2\r\nhi\r\n0\r\n\r\n").await;
        assert_eq!(stream.rest().await, b"2\r\nhi\r\n0\r\n\r\n");
        tunnel.write("still").await;
        other.expect("still").await;
        assert!(
            TcpStream::connect(rig.address).await.is_err(),
            "nobody listens"
        );
        assert!(rig.server.lifecycle().ended().now_or_never().is_none());
        drop(tunnel);
        other.rest().await;
        // Both sides.
        drop(other);
    };
    soon("the end", async { tokio::join!(stopping, rest) }).await;
    assert_eq!(rig.server.connections().now, 0);
    soon("the end", rig.server.lifecycle().ended()).await;
}

#[tokio::test]
async fn tunnels_that_stay_are_closed_with_a_word() {
    // P1.6, "After `drained` ... each WebSocket got a close frame."
    let rig = rig(SHORT, SHORT).await;
    let worker = rig.worker("a").await;
    let stream = TcpStream::connect(rig.address).await.expect("listens");
    let (client, peer) = tokio::join!(client_async("ws://rooms/rooms/alice/chat", stream), async {
        accept_async(worker.accept().await.stream)
            .await
            .expect("a handshake")
    });
    let (mut client, mut peer) = (client.expect("a handshake").0, peer);
    // One without frames, and a request that never ends.
    let mut tunnel = rig
        .send("GET /rooms/alice HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n")
        .await;
    let (mut other, _) = worker
        .answer("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n")
        .await;
    tunnel.head().await;
    let mut stuck = rig.get("/rooms/alice").await;
    let (mut asked, _) = worker.asked().await;

    let stopping = rig.server.stop();
    let rest = async {
        let Some(Ok(Message::Close(Some(frame)))) = client.next().await else {
            panic!("no close frame");
        };
        assert_eq!(frame.code, CloseCode::Restart);
        assert!(client.next().await.is_none());
        let Some(Ok(Message::Close(Some(frame)))) = peer.next().await else {
            panic!("no close frame");
        };
        assert_eq!(frame.code, CloseCode::Away);
        drop(peer);
        assert_eq!(tunnel.rest().await, b"");
        assert_eq!(other.rest().await, b"");
        assert_eq!(stuck.rest().await, b"");
        assert_eq!(asked.rest().await, b"");
    };
    soon("the end", async { tokio::join!(stopping, rest) }).await;
    assert_eq!(rig.server.connections().now, 0);
}

#[tokio::test]
async fn stopping_now_waits_for_nobody() {
    // P1.6: "A second SIGTERM exits at once."
    let rig = rig(LONG, LONG).await;
    let worker = rig.worker("a").await;
    let mut client = rig.get("/rooms/alice").await;
    let (mut peer, _) = worker.asked().await;
    let mut stopping = Box::pin(rig.server.stop());
    assert!(stopping.as_mut().now_or_never().is_none());
    rig.server.stop_now();
    soon("the end", rig.server.lifecycle().ended()).await;
    assert_eq!(client.rest().await, b"");
    assert_eq!(peer.rest().await, b"");
    assert!(rig.server.lifecycle().is_leaving());
}

#[tokio::test]
async fn an_idle_client_of_http_2_is_told_about_the_shutdown() {
    // "idle keep-alive connections and idle HTTP/2 sessions are told about the shutdown; a request racing the drain is
    // answered, not reset."
    use http_body_util::Empty;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let rig = rig(SHORT, LONG).await;
    let worker = rig.worker("a").await;
    let stream = TcpStream::connect(rig.address).await.expect("listens");
    let shaking = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut requests, connection) = shaking.await.expect("a handshake");
    let connection = rig.domain.spawn(connection);
    let request = |target: &str| {
        let uri = format!("http://rooms{target}");
        http::Request::get(uri)
            .body(Empty::<bytes::Bytes>::new())
            .expect("a request")
    };
    let asking = requests.send_request(request("/rooms/alice"));
    let (mut peer, _) = tokio::select! {
        biased;
        asked = worker.asked() => asked,
        () = std::future::pending() => unreachable!(),
    };
    let stopping = rig.server.stop();
    let rest = async {
        rig.domain.sleep(2 * SHORT).await;
        peer.write("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(asking.await.expect("answered").status(), 204);
        connection.await.expect("no panic").expect("a clean end");
    };
    soon("the end", async { tokio::join!(stopping, rest) }).await;
}

#[tokio::test]
async fn a_request_that_races_the_end_is_answered() {
    let rig = rig(SHORT, LONG).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = rig.get("/healthz").await;
        client.response().await;
        clients.push(client);
    }
    let stopping = rig.server.stop();
    let asking = async {
        rig.domain.sleep(SHORT).await;
        for mut client in clients {
            // Whoever is not told goodbye before has an answer; nobody is reset.
            let mut answer = Vec::new();
            let wrote =
                tokio::io::AsyncWriteExt::write_all(&mut client.stream, get("/healthz").as_bytes())
                    .await;
            let read = tokio::io::AsyncReadExt::read_to_end(&mut client.stream, &mut answer).await;
            assert!(wrote.is_ok() && read.is_ok(), "{wrote:?} {read:?}");
            assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 200"));
        }
    };
    soon("the end", async { tokio::join!(stopping, asking) }).await;
}
