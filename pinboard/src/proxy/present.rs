//! Which headers a request has of those that are seldom there. One look at the names it has costs less than asking for each.

use http::HeaderMap;

/// What one look at a request's headers finds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Present {
    pub(super) connection: bool,
    pub(super) content_length: bool,
    pub(super) te: bool,
    pub(super) transfer_encoding: bool,
    pub(super) upgrade: bool,
    /// What a proxy before this one has said of where it comes from.
    pub(super) forwarded: bool,
    /// The control plane's own.
    pub(super) own: bool,
}

impl Present {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut present = Self::default();
        for name in headers.keys() {
            match name.as_str() {
                "connection" => present.connection = true,
                "content-length" => present.content_length = true,
                "te" => present.te = true,
                "transfer-encoding" => present.transfer_encoding = true,
                "upgrade" => present.upgrade = true,
                name => {
                    present.forwarded |= name.starts_with("x-forwarded-");
                    present.own |= name.starts_with("pinboard-");
                }
            }
        }
        present
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use pinned_wire::headers::{FROM, SESSION, SESSION_SECRET, SUBREQUEST_DEPTH};

    use super::*;

    fn with(name: &'static str) -> Present {
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("*/*"));
        headers.insert(name, HeaderValue::from_static("x"));
        Present::of(&headers)
    }

    #[test]
    fn each_is_seen() {
        assert!(with("connection").connection && with("te").te && with("upgrade").upgrade);
        assert!(
            with("transfer-encoding").transfer_encoding && with("content-length").content_length
        );
        for name in ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"] {
            assert!(with(name).forwarded, "{name}");
        }
        for name in [&SESSION, &SESSION_SECRET, &FROM, &SUBREQUEST_DEPTH] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static("x"));
            assert!(Present::of(&headers).own, "{name}");
        }
        let Present {
            connection,
            content_length,
            te,
            transfer_encoding,
            upgrade,
            forwarded,
            own,
        } = with("cookie");
        let about_framing = content_length || te || transfer_encoding;
        assert!(!(connection || about_framing || upgrade || forwarded || own));
    }
}
