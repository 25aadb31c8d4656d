//! The head of a request as its worker gets it: written once, into one buffer.

use http::request::Parts;
use http::{HeaderMap, Method, Version, header};
use pinned_wire::headers::{ATTESTATION, EPOCH};
use tokio::time::Instant;

use super::headers::{self, RequestRules, write_line};
use super::present::Present;
use crate::placement::Placed;
use crate::upstream::{Framing, RequestHead};

/// Room for what is added to the headers of a client: a token, an epoch, where the request came from, the framing.
const ADDED: usize = 640;
/// What a header of a client takes, more or less.
const PER_HEADER: usize = 48;

/// A request of a client, as it has been understood.
#[derive(Debug)]
pub(super) struct Asked<'r> {
    /// Its head.
    pub(super) parts: &'r Parts,
    /// Which headers it has.
    pub(super) present: Present,
    /// The raw path and query.
    pub(super) target: &'r str,
    /// The value of `Host`, if it has one.
    pub(super) host: Option<&'r [u8]>,
    /// The address of the client.
    pub(super) peer: &'r str,
    /// How its body is delimited.
    pub(super) framing: Framing,
    /// What the connection would become.
    pub(super) upgrade: Option<&'r [u8]>,
    /// Which of its headers were meant for the control plane.
    pub(super) rules: RequestRules,
}

/// The length or the coding of a body is not to be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramingError {
    Lengths,
    Length,
    Coding,
}

impl FramingError {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Lengths => "more than one Content-Length",
            Self::Length => "malformed Content-Length",
            Self::Coding => "the only Transfer-Encoding is chunked, and without a Content-Length",
        }
    }
}

impl Asked<'_> {
    /// The head, as the worker of `placed` gets it.
    pub(super) fn head(&self, placed: &Placed, token: Token<'_>) -> RequestHead {
        let headers = &self.parts.headers;
        let mut bytes = Vec::with_capacity(ADDED + self.target.len() + PER_HEADER * headers.len());
        bytes.extend_from_slice(self.parts.method.as_str().as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(placed.worker.backend.path_prefix().as_bytes());
        bytes.extend_from_slice(self.target.as_bytes());
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        write_line(&mut bytes, &header::HOST, self.host.unwrap_or_default());
        headers::write_passing(&mut bytes, headers, self.present.connection, self.rules);
        let before = self.present.forwarded.then_some(headers);
        headers::write_forwarded(&mut bytes, before, self.peer, self.host);
        let expect_continue = self.expects_continue();
        if expect_continue {
            bytes.extend_from_slice(b"expect: 100-continue\r\n");
        }
        match token {
            Token::Anonymous(now) => placed.worker.with_anonymous_token(now, |token| {
                write_line(&mut bytes, &ATTESTATION, token.as_bytes());
            }),
            Token::Of(token) => write_line(&mut bytes, &ATTESTATION, token.as_bytes()),
        }
        write_line(&mut bytes, &EPOCH, placed.epoch_header.as_bytes());
        RequestHead {
            bytes,
            framing: self.framing,
            expect_continue,
            no_response_body: self.parts.method == Method::HEAD,
            upgrade: self.upgrade.map(<[u8]>::to_vec),
            accepts_trailers: self.present.te && accepts_trailers(headers),
        }
    }

    /// Whether the client waits until somebody wants its body. Clients of HTTP/2 are not told, so theirs is asked for at
    /// once, and those of HTTP/1.0 do not know of it.
    fn expects_continue(&self) -> bool {
        self.parts.version == Version::HTTP_11
            && !matches!(self.framing, Framing::None | Framing::Length(0))
            && self
                .parts
                .headers
                .get(header::EXPECT)
                .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
    }
}

/// Whom a request is attested as.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token<'t> {
    /// Nobody in particular, at this time.
    Anonymous(Instant),
    /// This, which was made for it.
    Of(&'t http::HeaderValue),
}

/// How the body of a request is delimited on its way to the worker. `is_empty` tells that it is known to have none.
pub(super) fn framing(
    parts: &Parts,
    present: Present,
    is_empty: bool,
) -> Result<Framing, FramingError> {
    let headers = &parts.headers;
    let length = match present.content_length {
        true => content_length(headers)?,
        false => None,
    };
    if present.transfer_encoding {
        let mut codings = headers.get_all(header::TRANSFER_ENCODING).into_iter();
        let is_chunked = codings
            .next()
            .is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
        if !is_chunked || codings.next().is_some() || length.is_some() {
            return Err(FramingError::Coding);
        }
        return Ok(Framing::Chunked);
    }
    Ok(match length {
        // Over HTTP/2, trailers may follow a body of known length.
        Some(_) if has_trailers_beside_length(parts) && !is_empty => Framing::Chunked,
        Some(length) => Framing::Length(length),
        None if !is_empty => Framing::Chunked,
        // Where a body is usual, its absence is said; HTTP/1.1 clients have said it or not.
        None if parts.version == Version::HTTP_2 && takes_body(&parts.method) => Framing::Length(0),
        None => Framing::None,
    })
}

fn content_length(headers: &HeaderMap) -> Result<Option<u64>, FramingError> {
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).into_iter();
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(FramingError::Lengths);
    }
    let parsed = |value: &http::HeaderValue| {
        std::str::from_utf8(value.as_bytes())
            .ok()
            // `parse` alone would take a sign.
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok())
            .ok_or(FramingError::Length)
    };
    length.map(parsed).transpose()
}

fn has_trailers_beside_length(parts: &Parts) -> bool {
    parts.version == Version::HTTP_2 && parts.headers.contains_key(header::TRAILER)
}

fn takes_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

fn accepts_trailers(headers: &HeaderMap) -> bool {
    headers::tokens(headers, &header::TE).any(|coding| {
        let end = coding.iter().position(|byte| *byte == b';');
        let coding = coding[..end.unwrap_or(coding.len())].trim_ascii();
        coding.eq_ignore_ascii_case(b"trailers")
    })
}

/// What a client wants its connection to become, if that is a thing to become (P5.3).
///
/// HTTP/2 in clear text is not: requests in such a tunnel would not pass by here.
pub(super) fn upgrade(parts: &Parts, present: Present, framing: Framing) -> Option<&[u8]> {
    if !present.upgrade {
        return None;
    }
    let headers = &parts.headers;
    let value = headers.get(header::UPGRADE)?.as_bytes();
    let is_one = headers.get_all(header::UPGRADE).into_iter().count() == 1;
    let is_http = headers::tokens(headers, &header::UPGRADE).any(|protocol| {
        let name = protocol
            .split(|byte| *byte == b'/')
            .next()
            .unwrap_or(protocol);
        name.eq_ignore_ascii_case(b"h2c")
            || name.eq_ignore_ascii_case(b"h2")
            || name.eq_ignore_ascii_case(b"http")
    });
    let may_be = is_one
        && !is_http
        && !value.is_empty()
        && parts.version == Version::HTTP_11
        && matches!(framing, Framing::None | Framing::Length(0))
        && headers::connection_lists(headers, "upgrade");
    may_be.then_some(value)
}

/// Whether an upgrade is to a WebSocket.
pub(super) fn is_websocket(upgrade: &[u8]) -> bool {
    upgrade.eq_ignore_ascii_case(b"websocket")
}
