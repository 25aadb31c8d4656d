//! A WebSocket client without a connection.

use std::fmt;
use std::future::IntoFuture;

use futures_util::future::BoxFuture;
use futures_util::{SinkExt as _, StreamExt as _};
use http::StatusCode;
use http::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use pinned::ws::{CloseFrame, InProcessUpgrade, Message};
use tokio::io::DuplexStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame as WireClose, Role};
use tokio_tungstenite::tungstenite::{Error as WireError, Message as WireMessage};

use crate::request::TestRequest;
use crate::response::TestResponse;

/// How many bytes are under way before the side that writes has to wait.
const BUFFER: usize = 64 * 1024;

/// "No status": a close frame without a code (RFC 6455, 7.1.5).
const NO_STATUS: u16 = 1005;

/// "Abnormal": the connection ended without a close frame (RFC 6455, 7.1.5).
const ABNORMAL: u16 = 1006;

/// A WebSocket that is to be opened, from [`TestClient::websocket`](crate::TestClient::websocket): await it.
///
/// It resolves to the socket, or to the answer of a server that refused.
///
/// ```
/// # use pinned_testing::TestClient;
/// # async fn demo(client: TestClient) {
/// let socket = client
///     .websocket("/rooms/blue/chat")
///     .protocols(["chat.v2", "chat.v1"])
///     .header("authorization", "Bearer secret")
///     .await
///     .expect("the server accepts");
/// assert_eq!(socket.protocol(), Some("chat.v2"));
/// # }
/// ```
#[must_use = "a socket opens when it is awaited"]
#[derive(Debug)]
pub struct SocketRequest {
    request: TestRequest,
}

/// The client's end of a WebSocket. Pings are answered while it reads.
///
/// Dropping it ends the connection without a close frame, as [`TestSocket::disconnect`] does.
///
/// ```
/// # use pinned_testing::TestSocket;
/// # async fn demo(mut socket: TestSocket) {
/// socket.send_text("hello").await.expect("the server is there");
/// assert_eq!(socket.recv_text().await.as_deref(), Some("hello to you"));
/// socket.close(1000, "bye").await;
/// assert_eq!(socket.recv_close().await.0, 1000);
/// # }
/// ```
pub struct TestSocket {
    stream: WebSocketStream<DuplexStream>,
    protocol: Option<String>,
}

/// The connection of a [`TestSocket`] has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection has ended")]
pub struct Disconnected;

// ===== impl SocketRequest =====

impl SocketRequest {
    pub(crate) fn new(request: TestRequest) -> Self {
        Self { request }
    }

    /// Adds a header to the handshake.
    ///
    /// # Panics
    ///
    /// When the name or the value is not valid in a header.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName>,
        N::Error: fmt::Debug,
        V: TryInto<HeaderValue>,
        V::Error: fmt::Debug,
    {
        self.request = self.request.header(name, value);
        self
    }

    /// Offers `protocols`, best first.
    ///
    /// # Panics
    ///
    /// When one of them cannot stand in a header.
    pub fn protocols<P: AsRef<str>>(self, protocols: impl IntoIterator<Item = P>) -> Self {
        let list: Vec<P> = protocols.into_iter().collect();
        let list: Vec<&str> = list.iter().map(AsRef::as_ref).collect();
        self.header(SEC_WEBSOCKET_PROTOCOL, list.join(", "))
    }

    async fn open(self) -> Result<TestSocket, TestResponse> {
        let Self { mut request } = self;
        let key = generate_key();
        let accept_key = derive_accept_key(key.as_bytes());
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers
            .entry(SEC_WEBSOCKET_VERSION)
            .or_insert(HeaderValue::from_static("13"));
        headers.insert(
            SEC_WEBSOCKET_KEY,
            HeaderValue::try_from(key).expect("base64 is a value"),
        );
        let (client, server) = tokio::io::duplex(BUFFER);
        let answer = request.send_over(InProcessUpgrade::new(server)).await;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(answer);
        }
        assert_eq!(
            answer.header(SEC_WEBSOCKET_ACCEPT),
            Some(accept_key.as_str()),
            "the server proves that it has read the key"
        );
        let protocol = answer.header(SEC_WEBSOCKET_PROTOCOL).map(str::to_owned);
        let stream = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        Ok(TestSocket { stream, protocol })
    }
}

impl IntoFuture for SocketRequest {
    type Output = Result<TestSocket, TestResponse>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

// ===== impl TestSocket =====

impl TestSocket {
    /// The subprotocol that the server chose.
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// Sends a text.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub async fn send_text(&mut self, text: impl Into<String>) -> Result<(), Disconnected> {
        self.send(Message::from(text.into())).await
    }

    /// Sends any message.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub async fn send(&mut self, message: Message) -> Result<(), Disconnected> {
        self.stream
            .send(to_wire(message))
            .await
            .map_err(|_ended| Disconnected)
    }

    /// The next text, binary or close message; `None` once the connection has ended, in whichever way.
    ///
    /// # Panics
    ///
    /// When the server breaks the protocol.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no message is lost.
    pub async fn recv(&mut self) -> Option<Message> {
        loop {
            match self.stream.next().await? {
                Ok(WireMessage::Text(text)) => return Some(Message::from(text.as_str())),
                Ok(WireMessage::Binary(bytes)) => return Some(Message::Binary(bytes)),
                Ok(WireMessage::Close(frame)) => {
                    // Reading has made the answer to the close; the server waits for it.
                    let _ = self.stream.flush().await;
                    return Some(Message::Close(frame.map(from_wire)));
                }
                Ok(WireMessage::Ping(_) | WireMessage::Pong(_) | WireMessage::Frame(_)) => {}
                Err(
                    WireError::ConnectionClosed
                    | WireError::AlreadyClosed
                    | WireError::Io(_)
                    | WireError::Protocol(ProtocolError::ResetWithoutClosingHandshake),
                ) => return None,
                Err(error) => panic!("the server breaks the protocol: {error}"),
            }
        }
    }

    /// The next message as text; `None` for a close and for the end of the connection.
    ///
    /// # Panics
    ///
    /// When the message is binary.
    pub async fn recv_text(&mut self) -> Option<String> {
        match self.recv().await? {
            Message::Text(text) => Some(text.as_str().to_owned()),
            Message::Close(_) => None,
            other => panic!("a text was expected, and this came: {other:?}"),
        }
    }

    /// Waits for the close, passing over messages before it: the code and the reason.
    ///
    /// The code is 1005 for a close frame without one, and 1006 when the connection ended without a close frame.
    pub async fn recv_close(&mut self) -> (u16, String) {
        loop {
            match self.recv().await {
                Some(Message::Close(Some(frame))) => {
                    return (frame.code, frame.reason);
                }
                Some(Message::Close(None)) => return (NO_STATUS, String::new()),
                Some(_) => {}
                None => return (ABNORMAL, String::new()),
            }
        }
    }

    /// Sends a close frame; [`TestSocket::recv_close`] then waits for the server's.
    pub async fn close(&mut self, code: u16, reason: impl Into<String>) {
        let reason = reason.into();
        // A connection that has ended needs no close.
        let _ = self
            .send(Message::Close(Some(CloseFrame { code, reason })))
            .await;
    }

    /// Ends the connection without a close frame, as a client does whose process dies: the server is told.
    pub fn disconnect(self) {
        drop(self.stream);
    }

    /// Goes silent without ending the connection, as a client does whose network is gone: nobody tells the server,
    /// which has to find out.
    ///
    /// The connection stays for the rest of the process.
    pub fn vanish(self) {
        // To drop it would be to tell the server.
        std::mem::forget(self.stream);
    }
}

impl fmt::Debug for TestSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSocket")
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

fn to_wire(message: Message) -> WireMessage {
    match message {
        Message::Text(text) => WireMessage::text(text.as_str()),
        Message::Binary(bytes) => WireMessage::Binary(bytes),
        Message::Ping(bytes) => WireMessage::Ping(bytes),
        Message::Pong(bytes) => WireMessage::Pong(bytes),
        Message::Close(frame) => WireMessage::Close(frame.map(|frame| WireClose {
            code: frame.code.into(),
            reason: frame.reason.into(),
        })),
    }
}

fn from_wire(frame: WireClose) -> CloseFrame {
    CloseFrame {
        code: frame.code.into(),
        reason: frame.reason.as_str().to_owned(),
    }
}
