//! What a client may say behind the body.

use http::{HeaderMap, HeaderName, header};

/// Adds the lines of those trailers that may be ones.
pub(super) fn write(trailers: &HeaderMap, to: &mut Vec<u8>) {
    for (name, value) in trailers {
        if may_trail(name) {
            to.extend_from_slice(name.as_str().as_bytes());
            to.extend_from_slice(b": ");
            to.extend_from_slice(value.as_bytes());
            to.extend_from_slice(b"\r\n");
        }
    }
}

/// A server may merge trailers into the headers, so what decides on the framing, the way, the connection or the caller
/// is dropped here (RFC 9110, 6.5.1), as is what only the control plane may say.
fn may_trail(name: &HeaderName) -> bool {
    const REFUSED: [HeaderName; 18] = [
        header::TRANSFER_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_ENCODING,
        header::CONTENT_TYPE,
        header::CONTENT_RANGE,
        header::TRAILER,
        header::HOST,
        header::CONNECTION,
        header::UPGRADE,
        header::TE,
        header::EXPECT,
        header::MAX_FORWARDS,
        header::CACHE_CONTROL,
        header::RANGE,
        header::AUTHORIZATION,
        header::PROXY_AUTHORIZATION,
        header::COOKIE,
        header::FORWARDED,
    ];
    let text = name.as_str();
    !REFUSED.contains(name)
        && ![
            "pinboard-",
            // For this one too, who takes one sign for the other would take it for the control plane's.
            "pinboard_",
            "pinned-",
            "x-forwarded-",
            "proxy-",
            "keep-alive",
        ]
        .iter()
        .any(|prefix| text.starts_with(prefix))
}
