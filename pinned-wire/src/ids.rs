//! Which ids and namespaces exist. `/<namespace>/<id>` addresses one instance.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The length of the longest id, in characters.
pub const MAX_ID_CHARS: usize = 256;

const ALPHABET: &str = "id must contain only [A-Za-z0-9._~-]";

/// Why `id` is not an id, or `None` when it is one.
///
/// Ids are taken as they are: case counts, and nothing is trimmed or decoded here.
///
/// ```
/// use pinned_wire::ids::invalid_id_reason;
///
/// assert_eq!(invalid_id_reason("alice-7"), None);
/// assert_eq!(invalid_id_reason(""), Some("id must be non-empty"));
/// ```
#[must_use]
pub fn invalid_id_reason(id: &str) -> Option<&'static str> {
    if id.is_empty() {
        Some("id must be non-empty")
    } else if id.len() > MAX_ID_CHARS && id.chars().nth(MAX_ID_CHARS).is_some() {
        Some("id must be at most 256 characters")
    } else if !id.bytes().all(is_unreserved) {
        Some(ALPHABET)
    } else if is_dots(id) {
        // HTTP clients resolve dot segments before they send, so these could not be addressed reliably.
        Some("id must not be . or ..")
    } else {
        None
    }
}

/// Why `namespace` is not a namespace, or `None` when it is one: a slash and one path segment that every client and
/// router passes on as it is.
///
/// ```
/// use pinned_wire::ids::invalid_namespace_reason;
///
/// assert_eq!(invalid_namespace_reason("/counters"), None);
/// assert!(invalid_namespace_reason("/a/b").is_some_and(|reason| reason.contains("single path segment")));
/// ```
#[must_use]
pub fn invalid_namespace_reason(namespace: &str) -> Option<&'static str> {
    const SHAPE: &str = "namespace must be '/' followed by a single path segment";
    let Some(segment) = namespace.strip_prefix('/') else {
        return Some(SHAPE);
    };
    // What is wrong with its characters is only asked where something is: control planes look at one per request.
    if segment.is_empty() {
        Some(SHAPE)
    } else if !segment.bytes().all(is_plain) {
        Some(if segment.contains('/') {
            SHAPE
        } else if segment.contains(|c: char| c.is_whitespace() || c.is_control()) {
            "namespace must be a single path segment without whitespace or control characters"
        } else {
            "namespace must contain only characters that need no encoding in a path: [A-Za-z0-9._~-] and !$&'()*+,;=:@"
        })
    } else if is_dots(segment) {
        Some("namespace must not be /. or /..")
    } else if segment.starts_with([':', '*']) {
        Some("namespace must not start with /: or /*, which routers take for parameters")
    } else if segment.starts_with('_') {
        Some("namespace must not start with /_, which is reserved for routes of the worker")
    } else {
        None
    }
}

/// An id segment decodes to something that is not text, and so to no id.
///
/// It reads as the reason that [`invalid_id_reason`] gives for characters that ids do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{ALPHABET}")]
pub struct NotText;

/// The id behind one raw segment of a request path: percent-decoded once, borrowed when nothing was encoded.
///
/// The result still needs [`invalid_id_reason`]; a `%2F` is a slash in it, which no route has in an id.
///
/// # Errors
/// [`NotText`] when the decoded bytes are not UTF-8.
///
/// ```
/// use pinned_wire::ids::decode_id;
///
/// assert_eq!(decode_id("%61lice").as_deref(), Ok("alice"));
/// assert_eq!(decode_id("%2561lice").as_deref(), Ok("%61lice"), "once");
/// ```
pub fn decode_id(segment: &str) -> Result<Cow<'_, str>, NotText> {
    if !segment.bytes().any(|byte| byte == b'%') {
        return Ok(Cow::Borrowed(segment));
    }
    percent_decode_str(segment)
        .decode_utf8()
        .map_err(|_| NotText)
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// What a byte may stand in, as a table: ids and namespaces are checked on every request.
const CLASSES: [Class; 256] = {
    let mut table = [Class::Neither; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'~' | b'-' => {
                Class::Unreserved
            }
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':'
            | b'@' => Class::OtherPchar,
            _ => Class::Neither,
        };
        byte += 1;
    }
    table
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// RFC 3986 `unreserved`.
    Unreserved,
    /// The rest of RFC 3986 `pchar`, less the percent-encoded ones.
    OtherPchar,
    Neither,
}

fn is_unreserved(byte: u8) -> bool {
    CLASSES[usize::from(byte)] == Class::Unreserved
}

/// RFC 3986 `pchar`, less the percent-encoded ones.
fn is_plain(byte: u8) -> bool {
    CLASSES[usize::from(byte)] != Class::Neither
}
