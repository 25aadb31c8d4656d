//! Header lookups on the hot path.

use http::{HeaderMap, HeaderName};

/// Up to how many headers it is cheaper to look at each than to hash a name.
const FEW: usize = 16;

/// Whether there is a header of this name, which is mostly absent.
pub(crate) fn has(headers: &HeaderMap, name: &HeaderName) -> bool {
    if headers.len() > FEW {
        return headers.contains_key(name);
    }
    headers.keys().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{AUTHORIZATION, UPGRADE};

    use super::*;

    #[test]
    fn a_header_is_found_among_few_and_among_many() {
        for others in [0, FEW - 1, FEW, 3 * FEW] {
            let mut headers = HeaderMap::new();
            for n in 0..others {
                let name = HeaderName::try_from(format!("x-{n}")).expect("a name");
                headers.insert(name, HeaderValue::from_static("x"));
            }
            headers.insert(UPGRADE, HeaderValue::from_static("x"));
            assert!(has(&headers, &UPGRADE) && !has(&headers, &AUTHORIZATION));
        }
    }
}
