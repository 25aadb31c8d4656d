//! The client's end: asking another instance for a socket, and reading the answer.

use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use tokio::io::DuplexStream;
use tungstenite::handshake::derive_accept_key;

use super::{
    DEFAULT_MAX_MESSAGE_SIZE, DEFAULT_PING_INTERVAL, DEFAULT_PING_TIMEOUT, InProcessUpgrade,
    SocketError, WebSocket,
    afterlife::Afterlife,
    handshake::{UPGRADE, VERSION, WEBSOCKET, has_token, only},
    link::{KeepAlive, Limits},
    slot::Slot,
    transport::Transport,
};
use crate::domain::Domain;

/// How much of what is sent the other end of this process has not read before the sender is held up, in bytes.
const ROOM: usize = 16 * 1024;

/// The label of the randomness behind keys, which are no secrets: they show that an answer is to this very request.
const KEYS: &str = "websocket-keys";

/// What an end that opens a socket asks for.
#[derive(Clone, Debug)]
pub(crate) struct ClientOptions {
    /// The subprotocols that it offers, best first.
    pub(crate) protocols: Vec<String>,
    pub(crate) max_message_size: usize,
    pub(crate) max_frame_size: Option<usize>,
    pub(crate) keep_alive: KeepAlive,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            protocols: Vec::new(),
            max_message_size: DEFAULT_MAX_MESSAGE_SIZE,
            max_frame_size: None,
            keep_alive: KeepAlive {
                interval: DEFAULT_PING_INTERVAL,
                timeout: DEFAULT_PING_TIMEOUT,
            },
        }
    }
}

/// A handshake that waits for its answer.
pub(crate) struct ClientHandshake {
    options: ClientOptions,
    accept: String,
    domain: Domain,
    /// Where the conversation is, if the answer says nothing else: the other end went with the request.
    here: DuplexStream,
}

/// An answer that grants no socket.
pub(crate) enum NoSocket {
    /// It says something else.
    Refused(Response),
    /// It is none to this handshake, and why.
    NotOne(&'static str),
    /// The connection was gone before it was handed over.
    Lost(SocketError),
}

impl ClientHandshake {
    /// The request for a socket at `uri`, which carries `headers` besides.
    ///
    /// # Errors
    ///
    /// A subprotocol that is no token of a header.
    pub(crate) fn new(
        domain: Domain,
        uri: Uri,
        mut headers: HeaderMap,
        options: ClientOptions,
    ) -> Result<(Self, Request<Body>), String> {
        let mut nonce = [0; 16];
        let random = domain.rng(KEYS).map_err(|error| error.to_string())?;
        for half in nonce.chunks_exact_mut(8) {
            half.copy_from_slice(&random.u64().to_le_bytes());
        }
        let key = BASE64.encode(nonce);
        let accept = derive_accept_key(key.as_bytes());
        // Of these nothing is the caller's to say.
        for name in [
            header::SEC_WEBSOCKET_ACCEPT,
            header::SEC_WEBSOCKET_EXTENSIONS,
            header::SEC_WEBSOCKET_PROTOCOL,
        ] {
            headers.remove(name);
        }
        headers.insert(header::CONNECTION, UPGRADE);
        headers.insert(header::UPGRADE, WEBSOCKET);
        headers.insert(header::SEC_WEBSOCKET_VERSION, VERSION);
        let key = HeaderValue::try_from(key).map_err(|error| error.to_string())?;
        headers.insert(header::SEC_WEBSOCKET_KEY, key);
        if !options.protocols.is_empty() {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, offer(&options.protocols)?);
        }
        let (here, there) = tokio::io::duplex(ROOM);
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request
            .extensions_mut()
            .insert(InProcessUpgrade::new(there));
        let handshake = Self {
            options,
            accept,
            domain,
            here,
        };
        Ok((handshake, request))
    }

    /// The socket that `answer` grants, and what looks after its end.
    ///
    /// # Cancel safety
    ///
    /// When dropped, there is no socket.
    pub(crate) async fn finish(
        self,
        mut answer: Response,
    ) -> Result<(WebSocket, Afterlife), NoSocket> {
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(NoSocket::Refused(answer));
        }
        let protocol = self.check(answer.headers()).map_err(NoSocket::NotOne)?;
        let transport = Transport::take(answer.extensions_mut())
            .unwrap_or_else(|| Transport::InProcess(Box::new(self.here)));
        let limits = Limits {
            message: self.options.max_message_size,
            frame: self
                .options
                .max_frame_size
                .unwrap_or(self.options.max_message_size),
        };
        let (slot, afterlife) = Slot::client(self.domain, transport, limits, protocol);
        slot.opened().await.map_err(NoSocket::Lost)?;
        Ok((WebSocket::new(slot, self.options.keep_alive), afterlife))
    }

    /// The subprotocol that an answer chooses, if it is one to this handshake (RFC 6455, 4.1).
    fn check(&self, headers: &HeaderMap) -> Result<Option<String>, &'static str> {
        let is_upgrade = has_token(headers, header::UPGRADE, "websocket")
            && has_token(headers, header::CONNECTION, "upgrade");
        if !is_upgrade {
            return Err("the answer upgrades to something else");
        }
        let accept = only(headers, header::SEC_WEBSOCKET_ACCEPT);
        if accept.is_none_or(|accept| accept != self.accept.as_str()) {
            return Err("the answer is to another handshake");
        }
        if headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
            return Err("the answer chooses an extension, and none was offered");
        }
        if !headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) {
            return Ok(None);
        }
        only(headers, header::SEC_WEBSOCKET_PROTOCOL)
            .and_then(|chosen| self.options.protocols.iter().find(|&offer| chosen == offer))
            .cloned()
            .map(Some)
            .ok_or("the answer chooses a subprotocol that was not offered")
    }
}

fn offer(protocols: &[String]) -> Result<HeaderValue, String> {
    let is_token = |protocol: &String| {
        // A name of a header is a token by the same rule.
        http::HeaderName::try_from(protocol.as_str()).is_ok()
    };
    if let Some(odd) = protocols.iter().find(|protocol| !is_token(protocol)) {
        return Err(format!("{odd:?} is no name of a subprotocol"));
    }
    HeaderValue::try_from(protocols.join(", ")).map_err(|error| error.to_string())
}
