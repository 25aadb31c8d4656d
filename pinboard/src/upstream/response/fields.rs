//! From parsed lines to a map of headers.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::Malformed;

/// The fields of a section. Their values are slices of `section`, which is what `fields` were parsed from.
pub(super) fn map(
    section: &Bytes,
    fields: &[httparse::Header<'_>],
) -> Result<HeaderMap, Malformed> {
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes())
            .map_err(|_| Malformed("the name of a header"))?;
        let value = HeaderValue::from_maybe_shared(section.slice_ref(field.value))
            .map_err(|_| Malformed("the value of a header"))?;
        map.append(name, value);
    }
    Ok(map)
}

/// What `httparse` has against a section.
pub(super) fn refusal(error: httparse::Error) -> Malformed {
    Malformed(match error {
        httparse::Error::HeaderName => "the name of a header, or a folded line",
        httparse::Error::HeaderValue => "the value of a header",
        httparse::Error::NewLine => "the end of a line",
        httparse::Error::Status => "the status line",
        httparse::Error::Version => "the version of HTTP",
        httparse::Error::TooManyHeaders => "more headers than there may be",
        httparse::Error::Token => "the status line",
    })
}
