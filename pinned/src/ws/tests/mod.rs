//! Sockets over an in-process connection, against a client of another make, on a paused clock.

#![allow(
    clippy::disallowed_methods,
    reason = "the client's side is no part of the domain; the clock is paused for both"
)]

mod client;
mod control;
mod handshake;
mod keep_alive;
mod server;
mod socket;

use std::time::Duration;

use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use http::{Request, request::Parts};
use tokio::{io::DuplexStream, sync::oneshot};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self,
        protocol::{Role, WebSocketConfig},
    },
};

use super::{InProcessUpgrade, SocketControl, WebSocket};
use crate::domain::Domain;

/// The sample key of RFC 6455 (1.3).
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// How much the connection takes before a client that does not read stalls it.
const ROOM: usize = 4 * 1024;

type Client = WebSocketStream<DuplexStream>;

fn upgrade_request() -> http::request::Builder {
    Request::builder()
        .uri("/rooms/a/chat")
        .header("connection", "keep-alive, Upgrade")
        .header("upgrade", "WebSocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", KEY)
}

fn parts(request: http::request::Builder) -> Parts {
    request.body(()).unwrap().into_parts().0
}

/// A request over an in-process connection, as the host has it.
struct Asked {
    control: SocketControl,
    answer: oneshot::Receiver<Response>,
    connection: DuplexStream,
}

fn ask(request: http::request::Builder) -> Asked {
    let (connection, server) = tokio::io::duplex(ROOM);
    let mut parts = parts(request.extension(InProcessUpgrade::new(server)));
    let (control, answer) = SocketControl::open(&mut parts, Domain::real()).unwrap();
    Asked {
        control,
        answer,
        connection,
    }
}

async fn client_over(connection: DuplexStream) -> Client {
    let config = WebSocketConfig::default().write_buffer_size(0);
    Client::from_raw_socket(connection, Role::Client, Some(config)).await
}

/// An accepted socket: the host's end, the handler's and the client's.
async fn open() -> (SocketControl, WebSocket, Client) {
    let asked = ask(upgrade_request());
    let socket = asked.control.upgrade().accept().await.unwrap();
    assert_eq!(asked.answer.await.unwrap().status(), 101);
    (asked.control, socket, client_over(asked.connection).await)
}

/// The code and reason of the close frame that is the client's next message.
async fn closed_with(client: &mut Client) -> (u16, String) {
    match client.next().await {
        Some(Ok(tungstenite::Message::Close(Some(frame)))) => {
            (frame.code.into(), frame.reason.to_string())
        }
        other => panic!("expected a close frame, got {other:?}"),
    }
}

async fn say(client: &mut Client, text: &str) {
    client.send(text.into()).await.unwrap();
}

/// Lets every other task run until all of them wait.
async fn settle() {
    // The clock is paused: it moves only when nothing else can.
    tokio::time::sleep(Duration::from_nanos(1)).await;
}
