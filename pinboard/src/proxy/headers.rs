//! Which headers pass, in which form (P5.5).
//!
//! A header is withheld when it is about one connection (those that `Connection` lists among them), when it is the control
//! plane's own, or when it is written anew. What is the control plane's own is added afterwards, so that no list of a client
//! can take it away.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// The subprotocol that carries a token for browsers, which cannot set `Authorization` on a WebSocket (P7.4).
const BEARER_SUBPROTOCOL: &str = "pinboard.bearer.";

/// What is special about the headers of one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestRules {
    /// `Authorization` was for the control plane (P7.5).
    pub strip_authorization: bool,
    /// So was one of the subprotocols (P7.4).
    pub strip_bearer_subprotocol: bool,
    /// `Cookie` may come in pieces that belong into one line: the client speaks HTTP/2.
    pub join_cookies: bool,
    /// The body has trailers, if they are announced.
    pub keep_trailer: bool,
}

/// Writes the lines of a request's headers that pass.
pub fn write_request(into: &mut Vec<u8>, headers: &HeaderMap, rules: RequestRules) {
    write_passing(into, headers, true, rules);
}

/// The same; `connection` is whether there may be such a header.
pub(super) fn write_passing(
    into: &mut Vec<u8>,
    headers: &HeaderMap,
    connection: bool,
    rules: RequestRules,
) {
    let listed = match connection {
        true => Listed::of(headers),
        false => Listed::default(),
    };
    let mut cookies_written = false;
    for (name, value) in headers {
        if is_withheld(name.as_str()) || listed.contains(name) {
            continue;
        }
        match *name {
            header::AUTHORIZATION if rules.strip_authorization => {}
            header::TRAILER if !rules.keep_trailer => {}
            header::COOKIE if rules.join_cookies => {
                if !std::mem::replace(&mut cookies_written, true) {
                    write_joined(into, name, headers, b"; ", None);
                }
            }
            header::SEC_WEBSOCKET_PROTOCOL if rules.strip_bearer_subprotocol => {
                write_subprotocols(into, name, value);
            }
            _ => write_line(into, name, value.as_bytes()),
        }
    }
}

/// Writes what proxies say of where a request came from, after what those `before` have said.
pub(super) fn write_forwarded(
    into: &mut Vec<u8>,
    before: Option<&HeaderMap>,
    peer: &str,
    host: Option<&[u8]>,
) {
    for (name, here) in [
        (&FORWARDED_FOR, Some(peer.as_bytes())),
        (&FORWARDED_PROTO, Some(&b"http"[..])),
        (&FORWARDED_HOST, host),
    ] {
        match (before, here) {
            (Some(headers), here) => write_joined(into, name, headers, b", ", here),
            (None, Some(here)) => write_line(into, name, here),
            (None, None) => {}
        }
    }
}

/// Takes out of a response's headers what does not pass. Framing is written anew by whoever serves the client.
pub fn strip_response(headers: &mut HeaderMap) {
    let mut known = Known::default();
    for name in headers.keys() {
        known.note(name.as_str());
    }
    if known.connection {
        // Rare: workers that close say so here.
        let listed = Listed::of(headers);
        let listed: Vec<HeaderName> = listed.names().collect();
        for name in listed {
            headers.remove(name);
        }
        headers.remove(header::CONNECTION);
    }
    if known.transfer_encoding {
        headers.remove(header::TRANSFER_ENCODING);
    }
    if known.others {
        let withheld: Vec<HeaderName> = headers
            .keys()
            .filter(|name| is_withheld_response(name.as_str()))
            .cloned()
            .collect();
        for name in withheld {
            headers.remove(name);
        }
    }
}

/// Takes out of a response's trailers what does not pass among its headers, and what is about the framing. Towards a client
/// of HTTP/2, a header of one connection would spoil the whole answer.
pub(super) fn strip_response_trailers(trailers: &mut HeaderMap) {
    let withheld: Vec<HeaderName> = trailers
        .keys()
        .filter(|name| {
            is_withheld_response(name.as_str())
                || matches!(name.as_str(), "content-length" | "host" | "trailer")
        })
        .cloned()
        .collect();
    for name in withheld {
        trailers.remove(name);
    }
}

/// Whether `Connection` lists `token`.
pub(super) fn connection_lists(headers: &HeaderMap, token: &str) -> bool {
    tokens(headers, &header::CONNECTION).any(|listed| listed.eq_ignore_ascii_case(token.as_bytes()))
}

/// The members of all the lines of a header that is a list; none is empty.
pub(super) fn tokens<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h [u8]> + use<'h> {
    headers
        .get_all(name)
        .into_iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

/// The only subprotocol that a client offers, when that is the one with its token: it expects it to be chosen.
pub(super) fn lone_bearer_subprotocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut offered = tokens(headers, &header::SEC_WEBSOCKET_PROTOCOL);
    let only = offered.next()?;
    if offered.next().is_some() || !is_bearer(only) {
        return None;
    }
    HeaderValue::from_bytes(only).ok()
}

static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Whether a header of a request is never passed on as it came. Names are in lower case.
fn is_withheld(name: &str) -> bool {
    is_hop_by_hop(name)
        || is_own(name)
        || matches!(
            name,
            // Written anew.
            "content-length" | "host" | "expect"
                | "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host"
                // An upgrade to HTTP/2 in clear text would carry requests past these rules.
                | "http2-settings"
        )
}

/// Whether a header of a response is never passed on, beside `Connection` and the framing.
fn is_withheld_response(name: &str) -> bool {
    is_own(name) || name == "pinned-refusal" || is_hop_by_hop(name)
}

fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// The control plane's own, with either of the signs that some servers take for one another.
fn is_own(name: &str) -> bool {
    name.strip_prefix("pinboard")
        .is_some_and(|rest| rest.starts_with(['-', '_']))
}

fn is_bearer(subprotocol: &[u8]) -> bool {
    subprotocol.starts_with(BEARER_SUBPROTOCOL.as_bytes())
}

/// What a response has of headers that do not pass.
#[derive(Default)]
struct Known {
    connection: bool,
    transfer_encoding: bool,
    others: bool,
}

impl Known {
    fn note(&mut self, name: &str) {
        match name {
            "connection" => self.connection = true,
            "transfer-encoding" => self.transfer_encoding = true,
            _ => self.others |= is_withheld_response(name),
        }
    }
}

/// The headers that `Connection` lists, of those that are there and would pass otherwise.
#[derive(Default)]
struct Listed<'h>(Vec<&'h [u8]>);

impl<'h> Listed<'h> {
    fn of(headers: &'h HeaderMap) -> Self {
        let mut listed: Vec<&[u8]> = Vec::new();
        for token in tokens(headers, &header::CONNECTION) {
            // Nearly always one of these two.
            if token.eq_ignore_ascii_case(b"keep-alive") || token.eq_ignore_ascii_case(b"upgrade") {
                continue;
            }
            let is_there = HeaderName::from_bytes(token)
                .is_ok_and(|name| !is_withheld(name.as_str()) && headers.contains_key(name));
            if is_there && !listed.iter().any(|known| known.eq_ignore_ascii_case(token)) {
                listed.push(token);
            }
        }
        Self(listed)
    }

    fn contains(&self, name: &HeaderName) -> bool {
        let name = name.as_str().as_bytes();
        self.0
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(name))
    }

    fn names(&self) -> impl Iterator<Item = HeaderName> + '_ {
        // Those that are no names were left out.
        self.0
            .iter()
            .filter_map(|listed| HeaderName::from_bytes(listed).ok())
    }
}

pub(super) fn write_line(into: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    into.extend_from_slice(name.as_str().as_bytes());
    into.extend_from_slice(b": ");
    into.extend_from_slice(value);
    into.extend_from_slice(b"\r\n");
}

/// One line with all the values of a header, and one more; none when there are no values.
fn write_joined(
    into: &mut Vec<u8>,
    name: &HeaderName,
    headers: &HeaderMap,
    between: &[u8],
    more: Option<&[u8]>,
) {
    let values = headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    let mut is_first = true;
    for value in values.chain(more) {
        if std::mem::take(&mut is_first) {
            into.extend_from_slice(name.as_str().as_bytes());
            into.extend_from_slice(b": ");
        } else {
            into.extend_from_slice(between);
        }
        into.extend_from_slice(value);
    }
    if !is_first {
        into.extend_from_slice(b"\r\n");
    }
}

/// The line less the subprotocols that carry a token; none when nothing is left.
fn write_subprotocols(into: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    let offered = value
        .as_bytes()
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|offered| !offered.is_empty() && !is_bearer(offered));
    let mut is_first = true;
    for subprotocol in offered {
        if std::mem::take(&mut is_first) {
            into.extend_from_slice(name.as_str().as_bytes());
            into.extend_from_slice(b": ");
        } else {
            into.extend_from_slice(b", ");
        }
        into.extend_from_slice(subprotocol);
    }
    if !is_first {
        into.extend_from_slice(b"\r\n");
    }
}
