//! Header lookups on the hot path.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Up to how many headers it is cheaper to look at each than to hash the name.
const FEW: usize = 16;

/// The first value of `name`, which is mostly absent.
pub(crate) fn find<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    if headers.len() <= FEW && headers.keys().all(|known| known != name) {
        return None;
    }
    headers.get(name)
}

/// Removes `name`, which is mostly absent.
pub(crate) fn strike(headers: &mut HeaderMap, name: &HeaderName) {
    if find(headers, name).is_some() {
        headers.remove(name);
    }
}
