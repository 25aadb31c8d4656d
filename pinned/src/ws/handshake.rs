//! The opening handshake: RFC 6455 over HTTP/1.1, RFC 8441 over HTTP/2.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header, request::Parts,
};
use hyper::ext::Protocol;
use tungstenite::handshake::derive_accept_key;

/// The only version of the protocol that there is.
pub(super) const VERSION: HeaderValue = HeaderValue::from_static("13");

pub(super) const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

pub(super) const UPGRADE: HeaderValue = HeaderValue::from_static("upgrade");

/// A request that asks for a socket and may have one.
#[derive(Debug)]
pub(super) struct Handshake {
    /// What proves to an HTTP/1.1 client that its key was read; HTTP/2 has no such proof.
    accept_key: Option<HeaderValue>,
    /// The subprotocols that the client offers, in its order of preference.
    pub(super) offered: Vec<String>,
}

/// Why a request cannot have a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    NotAnUpgrade,
    Version,
    Key,
    Method,
    NoConnection,
}

/// Whether a request asks for a socket, rightly or not, as far as its method and headers tell.
///
/// It decides between a route for sockets and one for plain requests on the same path. Over HTTP/2 a socket is asked
/// for with `CONNECT`, which no plain route answers.
pub(crate) fn is_upgrade(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::CONNECT
        || has_token(headers, header::UPGRADE, "websocket")
            && has_token(headers, header::CONNECTION, "upgrade")
}

/// Whether a request asks for a socket, by the rules of its version of HTTP.
pub(super) fn wants_websocket(parts: &Parts) -> bool {
    match parts.extensions.get::<Protocol>() {
        Some(protocol) => protocol.as_str().eq_ignore_ascii_case("websocket"),
        None => {
            parts.version <= Version::HTTP_11
                && has_token(&parts.headers, header::CONNECTION, "upgrade")
                && has_token(&parts.headers, header::UPGRADE, "websocket")
        }
    }
}

/// Checks a request for a socket.
pub(super) fn check(parts: &Parts) -> Result<Handshake, Refusal> {
    if !wants_websocket(parts) {
        return Err(Refusal::NotAnUpgrade);
    }
    let extended_connect = parts.extensions.get::<Protocol>().is_some();
    let method = if extended_connect {
        Method::CONNECT
    } else {
        Method::GET
    };
    if parts.method != method {
        return Err(Refusal::Method);
    }
    if only(&parts.headers, header::SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
        return Err(Refusal::Version);
    }
    let accept_key = if extended_connect {
        None
    } else {
        let key = only(&parts.headers, header::SEC_WEBSOCKET_KEY).ok_or(Refusal::Key)?;
        if BASE64.decode(key.as_bytes()).map(|nonce| nonce.len()) != Ok(16) {
            return Err(Refusal::Key);
        }
        let accept = derive_accept_key(key.as_bytes());
        Some(HeaderValue::try_from(accept).map_err(|_| Refusal::Key)?)
    };
    Ok(Handshake {
        accept_key,
        offered: tokens(&parts.headers, header::SEC_WEBSOCKET_PROTOCOL)
            .map(str::to_owned)
            .collect(),
    })
}

/// The tokens of a header that is a list, over all its lines.
fn tokens(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

pub(super) fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|found| found.eq_ignore_ascii_case(token))
}

/// The value of a header that stands in the request exactly once.
pub(super) fn only(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(name).into_iter();
    lines.next().filter(|_| lines.next().is_none())
}

// ===== impl Handshake =====

impl Handshake {
    /// The answer that opens the socket, naming `protocol` as the one in use.
    pub(super) fn accept(self, protocol: Option<&str>) -> Response {
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        if let Some(protocol) = protocol.and_then(|name| HeaderValue::from_str(name).ok()) {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        if let Some(accept_key) = self.accept_key {
            headers.insert(header::CONNECTION, UPGRADE);
            headers.insert(header::UPGRADE, WEBSOCKET);
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept_key);
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        }
        response
    }
}

// ===== impl Refusal =====

impl Refusal {
    /// The answer to a request of `version`.
    pub(super) fn into_response(self, version: Version) -> Response {
        let detail = serde_json::json!({ "detail": self.detail() });
        let mut response = (self.status(), axum::Json(detail)).into_response();
        if self.status() == StatusCode::UPGRADE_REQUIRED {
            let headers = response.headers_mut();
            headers.insert(header::SEC_WEBSOCKET_VERSION, VERSION);
            // RFC 9110 has a 426 name the protocol; HTTP/2 forbids both headers.
            if version <= Version::HTTP_11 {
                headers.insert(header::CONNECTION, UPGRADE);
                headers.insert(header::UPGRADE, WEBSOCKET);
            }
        }
        response
    }

    fn status(self) -> StatusCode {
        match self {
            Self::NotAnUpgrade | Self::Version | Self::NoConnection => StatusCode::UPGRADE_REQUIRED,
            Self::Key | Self::Method => StatusCode::BAD_REQUEST,
        }
    }

    fn detail(self) -> &'static str {
        match self {
            Self::NotAnUpgrade => "this route is a websocket; send an upgrade request",
            Self::Version => "sec-websocket-version must be 13",
            Self::Key => "sec-websocket-key must be 16 bytes in base64",
            Self::Method => "a websocket upgrade must be a GET, or over HTTP/2 a CONNECT",
            Self::NoConnection => "this connection cannot be upgraded",
        }
    }
}
