//! The tokens that a request comes with (P7.4).

use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue};

use super::static_token::MAX_TOKEN_BYTES;
use crate::headers::has;

/// What the subprotocol that carries a token begins with. A token follows it as it is; a browser only takes those of letters, digits
/// and ``!#$%&'*+-.^_`|~``.
pub const BEARER_PROTOCOL: &str = "pinboard.bearer.";

/// A token, in one of the places where it may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place<T> {
    /// There is none.
    Absent,
    /// There is one.
    One(T),
    /// There is something that is not one token: nobody is meant by it.
    Malformed,
}

/// The tokens that a request comes with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credentials<'a> {
    /// `Authorization: Bearer`; other schemes are none of ours.
    authorization: Place<&'a str>,
    /// The subprotocol of an upgrade.
    protocol: Place<&'a str>,
}

impl<'a> Credentials<'a> {
    /// Reads `Authorization`, and the subprotocols of an upgrade.
    #[inline]
    pub(super) fn of_request(headers: &'a HeaderMap, upgrade: bool) -> Self {
        Self {
            authorization: authorization(headers),
            protocol: if upgrade {
                protocol(headers)
            } else {
                Place::Absent
            },
        }
    }

    /// Reads `Authorization` alone.
    pub(super) fn of_call(headers: &'a HeaderMap) -> Self {
        Self::of_request(headers, false)
    }

    /// The token of the `Authorization` header; `None` also when any part of what the request brings is malformed.
    pub(super) fn header_token(&self) -> Option<&'a str> {
        self.meant(self.authorization)
    }

    /// The token of the subprotocol, as [`header_token`](Self::header_token).
    pub(super) fn protocol_token(&self) -> Option<&'a str> {
        self.meant(self.protocol)
    }

    /// Whether a subprotocol is there that may hold a token.
    pub(super) fn has_protocol(&self) -> bool {
        self.protocol != Place::Absent
    }

    fn meant(&self, place: Place<&'a str>) -> Option<&'a str> {
        match (self.authorization, self.protocol, place) {
            (Place::Malformed, _, _) | (_, Place::Malformed, _) => None,
            (_, _, Place::One(token)) => Some(token),
            (_, _, Place::Absent | Place::Malformed) => None,
        }
    }
}

#[inline]
fn authorization(headers: &HeaderMap) -> Place<&str> {
    if !has(headers, &AUTHORIZATION) {
        return Place::Absent;
    }
    let mut values = headers.get_all(AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (None, _) => Place::Absent,
        (Some(value), None) => bearer(value.as_bytes()),
        // Whoever comes later may read the other one.
        (Some(_), Some(_)) => Place::Malformed,
    }
}

fn bearer(value: &[u8]) -> Place<&str> {
    const SCHEME: &[u8] = b"bearer";
    let Some((scheme, rest)) = value.split_at_checked(SCHEME.len()) else {
        return Place::Absent;
    };
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return Place::Absent;
    }
    match rest {
        [] => Place::Malformed,
        [b' ', ..] => token(rest.trim_ascii_start()),
        // Another scheme, whose name begins alike.
        _ => Place::Absent,
    }
}

fn token(bytes: &[u8]) -> Place<&str> {
    let is_token = (1..=MAX_TOKEN_BYTES).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_graphic());
    match std::str::from_utf8(bytes) {
        Ok(token) if is_token => Place::One(token),
        _ => Place::Malformed,
    }
}

// --- Subprotocols ------------------------------------------------------------------------------------------------------------------

fn protocol(headers: &HeaderMap) -> Place<&str> {
    let mut bearers =
        protocols(headers).filter_map(|entry| entry.strip_prefix(BEARER_PROTOCOL.as_bytes()));
    match (bearers.next(), bearers.next()) {
        (None, _) => Place::Absent,
        (Some(bytes), None) => token(bytes),
        (Some(_), Some(_)) => Place::Malformed,
    }
}

/// The subprotocols that a client offers, in order, over all lines.
fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|entry| !entry.is_empty())
}

/// The subprotocols that are left when those with a token are taken out: what goes on to the worker in the place of all
/// `Sec-WebSocket-Protocol` lines. `None` when none is left, and the header goes altogether.
///
/// A worker chooses among what it gets. Browsers end a connection for which no protocol was chosen although some were offered, so a
/// page offers one of the app's own beside its token.
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::SEC_WEBSOCKET_PROTOCOL};
/// use pinboard::passport::remaining_protocols;
///
/// let mut headers = HeaderMap::new();
/// headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("chat, pinboard.bearer.t0ken, json"));
/// assert_eq!(remaining_protocols(&headers), Some(HeaderValue::from_static("chat, json")));
/// ```
#[must_use]
pub fn remaining_protocols(headers: &HeaderMap) -> Option<HeaderValue> {
    let remaining: Vec<_> = protocols(headers)
        .filter(|entry| !entry.starts_with(BEARER_PROTOCOL.as_bytes()))
        .collect();
    if remaining.is_empty() {
        return None;
    }
    // Parts of valid values, joined by what is valid too.
    HeaderValue::from_bytes(&remaining.join(&b", "[..])).ok()
}
