//! Whom a request is addressed to: `Host`, `:authority`, or the authority of an absolute target.

use http::request::Parts;
use http::{Version, header};

/// A request does not say whom it is addressed to, or says it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostError {
    Missing,
    Twice,
    Differs,
    Invalid,
}

impl HostError {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Missing => "missing Host header",
            Self::Twice => "more than one Host header",
            Self::Differs => "the authority of the request differs from its Host header",
            Self::Invalid => "invalid Host header",
        }
    }
}

/// What `Host` says upstream: as it came. `None` when a client of HTTP/1.0 says nothing, and need not.
pub(super) fn host(parts: &Parts) -> Result<Option<&[u8]>, HostError> {
    let mut lines = parts.headers.get_all(header::HOST).into_iter();
    let line = lines.next().map(|value| value.as_bytes());
    if lines.next().is_some() {
        return Err(HostError::Twice);
    }
    let authority = parts
        .uri
        .authority()
        .map(|authority| authority.as_str().as_bytes());
    let host = match (authority, line) {
        // An absolute target takes the place of `Host`, and a proxy writes that anew (RFC 9112, 3.2.2).
        (Some(authority), _) if parts.version < Version::HTTP_2 => authority,
        (Some(authority), Some(line)) if !authority.eq_ignore_ascii_case(line) => {
            return Err(HostError::Differs);
        }
        (Some(authority), _) => authority,
        (None, Some(line)) => line,
        (None, None) if parts.version == Version::HTTP_10 => return Ok(None),
        (None, None) => return Err(HostError::Missing),
    };
    if is_host(host) {
        Ok(Some(host))
    } else {
        Err(HostError::Invalid)
    }
}

/// Whether there is nothing in it that ends a host for one reader and not for another. An empty one is allowed.
fn is_host(host: &[u8]) -> bool {
    host.iter().all(|byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\' | b'?' | b'#' | b'@' | b',' | b'"')
    })
}
