//! What travels over a socket.

use std::{borrow::Borrow, fmt, ops::Deref};

use bytes::Bytes;
use tungstenite::protocol::{CloseFrame as WireClose, frame::coding::CloseCode};

use super::SocketError;

/// The most bytes a control frame may carry (RFC 6455, 5.5).
const MAX_CONTROL_PAYLOAD: usize = 125;

/// The most bytes of text in a close frame: a control frame less the two bytes of its code.
pub(crate) const MAX_REASON: usize = MAX_CONTROL_PAYLOAD - 2;

/// The close codes of RFC 6455 and its registry that have a meaning here.
///
/// Codes from 4000 to 4999 are an application's own.
pub mod close_code {
    /// The conversation is over.
    pub const NORMAL: u16 = 1000;
    /// An end is going away, such as a page that was left.
    pub const GOING_AWAY: u16 = 1001;
    /// The other end broke the protocol.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// A kind of data that this end cannot take.
    pub const UNSUPPORTED_DATA: u16 = 1003;
    /// Text that is not UTF-8.
    pub const INVALID_PAYLOAD: u16 = 1007;
    /// Refused; see the reason.
    pub const POLICY_VIOLATION: u16 = 1008;
    /// A message over the limit.
    pub const MESSAGE_TOO_BIG: u16 = 1009;
    /// The server failed.
    pub const INTERNAL_ERROR: u16 = 1011;
    /// The instance was evicted or its worker shut down: connect again.
    pub const SERVICE_RESTART: u16 = 1012;
    /// The server cannot serve this now: connect again later.
    pub const TRY_AGAIN_LATER: u16 = 1013;
}

/// One message of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Text.
    Text(Utf8Bytes),
    /// Bytes.
    Binary(Bytes),
    /// A ping of at most 125 bytes. One that arrives has been answered already.
    Ping(Bytes),
    /// A pong of at most 125 bytes. Answers to the socket's own keep-alive are not shown.
    Pong(Bytes),
    /// The close frame, or `None` where it carried no code. Nothing follows one that arrives.
    Close(Option<CloseFrame>),
}

/// Why a socket is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseFrame {
    /// The code, often one of [`close_code`].
    ///
    /// A code that may not be sent, such as 1006, goes out as 1011.
    pub code: u16,
    /// The reason; more than 123 bytes are cut at the end of a character.
    pub reason: String,
}

/// Immutable text that is cheap to clone.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Utf8Bytes(tungstenite::Utf8Bytes);

/// Cuts `reason` to what fits into a close frame, at the end of a character (H6.10).
pub(crate) fn truncate_reason(reason: &str) -> &str {
    // A character has at most four bytes, so one of these is a boundary.
    let end = (MAX_REASON.saturating_sub(3)..=MAX_REASON)
        .rev()
        .find(|&end| reason.is_char_boundary(end));
    match end {
        Some(end) if reason.len() > MAX_REASON => &reason[..end],
        _ => reason,
    }
}

// ===== impl Message =====

impl Message {
    /// A text message.
    pub fn text(text: impl Into<Utf8Bytes>) -> Self {
        Self::Text(text.into())
    }

    /// A binary message.
    pub fn binary(bytes: impl Into<Bytes>) -> Self {
        Self::Binary(bytes.into())
    }

    /// The form for the wire.
    pub(super) fn into_wire(self) -> Result<tungstenite::Message, SocketError> {
        Ok(match self {
            Self::Text(text) => tungstenite::Message::Text(text.0),
            Self::Binary(bytes) => tungstenite::Message::Binary(bytes),
            Self::Ping(bytes) => tungstenite::Message::Ping(control_payload(bytes)?),
            Self::Pong(bytes) => tungstenite::Message::Pong(control_payload(bytes)?),
            Self::Close(frame) => tungstenite::Message::Close(frame.map(CloseFrame::into_wire)),
        })
    }

    /// The message in a frame from the wire; none for a raw frame, which reading never yields.
    pub(super) fn from_wire(message: tungstenite::Message) -> Option<Self> {
        Some(match message {
            tungstenite::Message::Text(text) => Self::Text(Utf8Bytes(text)),
            tungstenite::Message::Binary(bytes) => Self::Binary(bytes),
            tungstenite::Message::Ping(bytes) => Self::Ping(bytes),
            tungstenite::Message::Pong(bytes) => Self::Pong(bytes),
            tungstenite::Message::Close(frame) => Self::Close(frame.map(|frame| CloseFrame {
                code: frame.code.into(),
                reason: frame.reason.as_str().to_owned(),
            })),
            tungstenite::Message::Frame(_) => return None,
        })
    }
}

fn control_payload(bytes: Bytes) -> Result<Bytes, SocketError> {
    if bytes.len() > MAX_CONTROL_PAYLOAD {
        return Err(SocketError::TooLarge {
            size: bytes.len(),
            limit: MAX_CONTROL_PAYLOAD,
        });
    }
    Ok(bytes)
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Utf8Bytes> for Message {
    fn from(text: Utf8Bytes) -> Self {
        Self::Text(text)
    }
}

impl From<Bytes> for Message {
    fn from(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Self::binary(bytes)
    }
}

// ===== impl CloseFrame =====

impl CloseFrame {
    /// A close with `code` and `reason`.
    pub fn new(code: u16, reason: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
        }
    }

    pub(super) fn into_wire(self) -> WireClose {
        let code = match CloseCode::from(self.code) {
            code if code.is_allowed() => code,
            _ => CloseCode::Error,
        };
        WireClose {
            code,
            reason: truncate_reason(&self.reason).into(),
        }
    }
}

// ===== impl Utf8Bytes =====

impl Utf8Bytes {
    /// Text that lives as long as the program.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(tungstenite::Utf8Bytes::from_static(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Deref for Utf8Bytes {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Utf8Bytes {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<[u8]> for Utf8Bytes {
    fn as_ref(&self) -> &[u8] {
        self.as_str().as_bytes()
    }
}

impl Borrow<str> for Utf8Bytes {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Utf8Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Utf8Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<String> for Utf8Bytes {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Utf8Bytes {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<Utf8Bytes> for Bytes {
    fn from(text: Utf8Bytes) -> Self {
        text.0.into()
    }
}

impl TryFrom<Bytes> for Utf8Bytes {
    type Error = std::str::Utf8Error;

    fn try_from(bytes: Bytes) -> Result<Self, Self::Error> {
        tungstenite::Utf8Bytes::try_from(bytes).map(Self)
    }
}

impl PartialEq<str> for Utf8Bytes {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Utf8Bytes {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}
