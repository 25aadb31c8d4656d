//! The head of a response.

use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{Decoder, Malformed, Section, fields};
use crate::headers::has;

/// The most bytes of a head (P5.12).
const MOST_BYTES: usize = 64 << 10;
/// The most headers in it.
const MOST_FIELDS: usize = 256;

/// The head of a response, and what follows from it.
#[derive(Debug)]
pub(in crate::upstream) struct ResponseHead {
    pub(in crate::upstream) status: StatusCode,
    pub(in crate::upstream) headers: HeaderMap,
    /// Whether another request may follow on the connection, as far as the head goes.
    pub(in crate::upstream) is_persistent: bool,
    /// How the body is delimited; it has none when the request's method is `HEAD`.
    pub(in crate::upstream) body: Decoder,
}

impl ResponseHead {
    /// The search for the end of a head.
    pub(in crate::upstream) fn section() -> Section {
        Section::new(MOST_BYTES)
    }

    /// Takes a head off the front of `buffer`; `None` when it has not come as a whole. `section` remembers how far an
    /// earlier call has looked, and is new again after a head.
    pub(in crate::upstream) fn take(
        buffer: &mut BytesMut,
        section: &mut Section,
        no_body: bool,
    ) -> Result<Option<Self>, Malformed> {
        // What cannot be a response is not waited for. (httparse would skip empty lines.)
        if buffer.first().is_some_and(|first| *first != b'H') {
            return Err(Malformed("not a status line"));
        }
        let Some(end) = section.end(buffer)? else {
            return Ok(None);
        };
        *section = Self::section();
        Self::parse(buffer.split_to(end).freeze(), no_body).map(Some)
    }

    fn parse(head: Bytes, no_body: bool) -> Result<Self, Malformed> {
        let mut lines = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default()
            .parse_response_with_uninit_headers(&mut response, &head, &mut lines)
            .map_err(fields::refusal)?;
        if parsed != httparse::Status::Complete(head.len()) {
            return Err(Malformed("an empty line inside a head"));
        }
        let status = response
            .code
            .and_then(|code| StatusCode::from_u16(code).ok())
            .ok_or(Malformed("the status"))?;
        let is_http_11 = response.version == Some(1);
        let mut headers = fields::map(&head, response.headers)?;

        let length = content_length(&headers)?;
        let is_chunked = has(&headers, &header::TRANSFER_ENCODING) && is_chunked(&headers)?;
        if is_chunked && (length.is_some() || !is_http_11) {
            return Err(Malformed("a Transfer-Encoding that others may not see"));
        }
        let says_close = has(&headers, &header::CONNECTION) && says_close(&headers);
        let mut is_persistent = is_http_11 && !says_close;
        let has_no_body = no_body || status == StatusCode::NOT_MODIFIED;
        let body = if has_no_body {
            Decoder::Empty
        } else if status.is_informational() || status == StatusCode::NO_CONTENT {
            if is_chunked {
                return Err(Malformed("a body where none may be"));
            }
            // Its sender may think that there is one: whatever comes is not read as another response.
            is_persistent &= length.unwrap_or(0) == 0;
            Decoder::Empty
        } else if is_chunked {
            Decoder::chunked()
        } else if let Some(length) = length {
            Decoder::length(length)
        } else {
            is_persistent = false;
            Decoder::UntilClose
        };
        if status == StatusCode::NO_CONTENT {
            // A client that believed it would wait for a body, or take the next answer for one (RFC 9110, 8.6).
            headers.remove(header::CONTENT_LENGTH);
        }
        Ok(Self {
            status,
            headers,
            is_persistent,
            body,
        })
    }
}

/// The one `Content-Length`, if there is one. Two are refused also when they agree: nothing of ours sends them.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let Some(value) = only(headers, header::CONTENT_LENGTH)? else {
        return Ok(None);
    };
    // `parse` alone would take a sign.
    std::str::from_utf8(value.as_bytes())
        .ok()
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
        .map(Some)
        .ok_or(Malformed("the Content-Length"))
}

/// Whether the body is in chunks. No other coding is understood, nor asked for.
fn is_chunked(headers: &HeaderMap) -> Result<bool, Malformed> {
    match only(headers, header::TRANSFER_ENCODING)? {
        None => Ok(false),
        Some(value) if value.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(true),
        Some(_) => Err(Malformed("the Transfer-Encoding")),
    }
}

fn only(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&HeaderValue>, Malformed> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(Malformed("a header of the framing that is there twice")),
    }
}

fn says_close(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}
