//! The client's end: what is an answer to its handshake, and how it finds that the other end has gone.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, Request, StatusCode, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tungstenite::handshake::derive_accept_key;

use super::*;
use crate::ws::{
    Afterlife, ClientHandshake, ClientOptions, Message, NoSocket, SocketError, transport::Transport,
};

/// A handshake that offers `protocols`, its request, and the other end of the connection.
fn ask_for(protocols: &[&str]) -> (ClientHandshake, Request<Body>, DuplexStream) {
    let options = ClientOptions {
        protocols: protocols.iter().map(|&name| name.to_owned()).collect(),
        ..ClientOptions::default()
    };
    let uri = "/rooms/a/chat".parse().unwrap();
    let (handshake, mut request) =
        ClientHandshake::new(Domain::real(), uri, HeaderMap::new(), options).unwrap();
    // The end that went with the request is none that this test can write to.
    let taken = Transport::take(request.extensions_mut());
    assert!(taken.is_some());
    let (here, there) = tokio::io::duplex(ROOM);
    request.extensions_mut().insert(InProcessUpgrade::new(here));
    (handshake, request, there)
}

/// The answer that grants `request`, over the connection that it came with.
fn granted(request: &mut Request<Body>) -> Response {
    let key = request.headers()[header::SEC_WEBSOCKET_KEY].as_bytes();
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let accept = derive_accept_key(key).parse().unwrap();
    let headers = response.headers_mut();
    headers.insert("connection", "Upgrade".parse().unwrap());
    headers.insert("upgrade", "WebSocket".parse().unwrap());
    headers.insert("sec-websocket-accept", accept);
    let connection = request.extensions_mut().remove::<InProcessUpgrade>();
    response.extensions_mut().insert(connection.unwrap());
    response
}

async fn opened() -> (WebSocket, Afterlife, DuplexStream) {
    let (handshake, mut request, there) = ask_for(&[]);
    let answer = granted(&mut request);
    let Ok((socket, afterlife)) = handshake.finish(answer).await else {
        panic!("it was granted");
    };
    (socket, afterlife, there)
}

#[tokio::test(start_paused = true)]
async fn each_request_has_a_key_of_its_own_and_what_the_protocol_says() {
    // RFC 6455, 4.1
    let (_, one, _) = ask_for(&[]);
    let (_, other, _) = ask_for(&["v2", "v1"]);
    for request in [&one, &other] {
        assert_eq!(request.headers()["connection"], "upgrade");
        assert_eq!(request.headers()["upgrade"], "websocket");
        assert_eq!(request.headers()["sec-websocket-version"], "13");
    }
    let key = header::SEC_WEBSOCKET_KEY;
    assert_eq!(one.headers()[&key].len(), 24);
    assert_ne!(one.headers()[&key], other.headers()[&key]);
    assert_eq!(one.headers().get("sec-websocket-protocol"), None);
    assert_eq!(other.headers()["sec-websocket-protocol"], "v2, v1");
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_something_else_opens_nothing() {
    // RFC 6455, 4.1
    let cases: [(&str, &str, &str); 6] = [
        ("upgrade", "h2c", "upgrades to something else"),
        ("connection", "close", "upgrades to something else"),
        ("sec-websocket-accept", "x", "another handshake"),
        (
            "sec-websocket-extensions",
            "permessage-deflate",
            "extension",
        ),
        ("sec-websocket-protocol", "v3", "not offered"),
        ("sec-websocket-protocol", "V2", "not offered"),
    ];
    for (name, value, why) in cases {
        let (handshake, mut request, _there) = ask_for(&["v2"]);
        let mut answer = granted(&mut request);
        let name: http::HeaderName = name.parse().unwrap();
        answer.headers_mut().insert(name, value.parse().unwrap());
        match handshake.finish(answer).await {
            Err(NoSocket::NotOne(said)) => assert!(said.contains(why), "{said}"),
            _ => panic!("{value} was taken"),
        }
    }
    let (handshake, mut request, _there) = ask_for(&[]);
    let mut answer = granted(&mut request);
    *answer.status_mut() = StatusCode::OK;
    let refused = handshake.finish(answer).await;
    assert!(matches!(refused, Err(NoSocket::Refused(_))));
}

#[tokio::test(start_paused = true)]
async fn another_end_that_vanishes_has_left() {
    let (mut socket, _afterlife, there) = opened().await;
    drop(there);
    let heard = socket.recv().await;
    assert!(
        matches!(heard, Some(Err(SocketError::ServerLeft))),
        "{heard:?}"
    );
    assert!(socket.recv().await.is_none());
    let sent = socket.send_text("x").await;
    assert!(matches!(sent, Err(SocketError::ServerLeft)), "{sent:?}");
    assert!(!SocketError::ServerLeft.is_client_left());
}

#[tokio::test(start_paused = true)]
async fn another_end_that_is_silent_is_pinged_and_then_given_up() {
    let (mut socket, _afterlife, mut there) = opened().await;
    let began = Domain::real().monotonic();
    let heard = socket.recv().await;
    assert!(
        matches!(heard, Some(Err(SocketError::ServerLeft))),
        "{heard:?}"
    );
    let took = Domain::real().monotonic() - began;
    assert_eq!(
        took,
        crate::ws::DEFAULT_PING_INTERVAL + crate::ws::DEFAULT_PING_TIMEOUT
    );
    // A masked ping.
    let mut frame = [0; 2];
    there.read_exact(&mut frame).await.unwrap();
    assert_eq!((frame[0], frame[1] & 0x80), (0x89, 0x80));
}

#[tokio::test(start_paused = true)]
async fn frames_go_masked_and_masked_ones_are_not_taken() {
    // RFC 6455, 5.1
    let (mut socket, _afterlife, mut there) = opened().await;
    socket.send_text("hi").await.unwrap();
    let mut frame = [0; 8];
    there.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[..2], [0x81, 0x82]);
    there.write_all(&[0x81, 2]).await.unwrap();
    there.write_all(b"ho").await.unwrap();
    let heard = socket.recv().await.unwrap().unwrap();
    assert_eq!(heard, Message::text("ho"));
    there.write_all(&[0x81, 0x80, 1, 2, 3, 4]).await.unwrap();
    let heard = socket.recv().await;
    assert!(
        matches!(heard, Some(Err(SocketError::Protocol(_)))),
        "{heard:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_is_dropped_says_goodbye_and_waits_for_the_answer_a_second_long() {
    let (socket, afterlife, mut there) = opened().await;
    let looked_after = tokio::spawn(afterlife.run(std::future::pending()));
    drop(socket);
    // 1001, without a reason.
    let mut frame = [0; 8];
    there.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[..2], [0x88, 0x82]);
    assert!(!looked_after.is_finished());
    there.write_all(&[0x88, 2, 0x03, 0xe9]).await.unwrap();
    let began = Domain::real().monotonic();
    looked_after.await.unwrap();
    assert_eq!(Domain::real().monotonic(), began, "it was answered");

    let (socket, afterlife, _there) = opened().await;
    let looked_after = tokio::spawn(afterlife.run(std::future::pending()));
    drop(socket);
    let began = Domain::real().monotonic();
    looked_after.await.unwrap();
    assert_eq!(Domain::real().monotonic() - began, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_is_dropped_as_its_instance_closes_says_goodbye_all_the_same() {
    let (socket, afterlife, mut there) = opened().await;
    // More than the connection takes: the rest, and the close frame behind it, are still to be written.
    let mut sending = Box::pin(socket.send(Message::binary(vec![7; 4 * ROOM])));
    assert!(futures_util::poll!(&mut sending).is_pending());
    drop(sending);
    drop(socket);
    let looked_after = tokio::spawn(afterlife.run(std::future::ready(())));
    let mut heard = Vec::new();
    there.read_to_end(&mut heard).await.unwrap();
    // Of the message: a head with 2 bytes of length and 4 of the mask. The close frame has a code, and no reason.
    assert_eq!(heard.len(), 2 + 2 + 4 + 4 * ROOM + 2 + 4 + 2);
    assert_eq!(heard[heard.len() - 8..][..2], [0x88, 0x82]);
    looked_after.await.unwrap();
}
