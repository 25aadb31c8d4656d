//! The URL that a worker advertises.

use pinned_wire::registry::{CHALLENGE_PATH, STATS_PATH};
use url::Url;

use crate::passport::{BackendHostError, parse_backend_url};

/// The longest URL that is taken, in bytes.
const LONGEST: usize = 2048;

/// The URL that a worker advertises, with the worker's own routes below it: `http` or `https`, a host, perhaps a port, perhaps a
/// path that comes before every other.
///
/// ```
/// use pinboard::sessions::AdvertisedUrl;
///
/// let url = AdvertisedUrl::parse("http://10.0.3.7:8000/app/").unwrap();
/// assert_eq!(url.challenge("a b").as_str(), "http://10.0.3.7:8000/app/_pinned/challenge?challenge=a+b");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AdvertisedUrl {
    given: String,
    url: Url,
}

impl AdvertisedUrl {
    /// Reads one.
    ///
    /// # Errors
    ///
    /// [`BackendHostError::Malformed`] for anything that is not plainly such a URL.
    pub fn parse(text: &str) -> Result<Self, BackendHostError> {
        if text.len() > LONGEST {
            return Err(BackendHostError::Malformed("must be at most 2048 bytes"));
        }
        // The parser would turn these into slashes; nobody who means well sends them.
        if text.contains('\\') {
            return Err(BackendHostError::Malformed("must not have a backslash"));
        }
        Ok(Self {
            url: parse_backend_url(text)?,
            given: text.to_owned(),
        })
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.given
    }

    /// As it was read.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Where the worker proves that the URL is its own (W10.2).
    #[must_use]
    pub fn challenge(&self, challenge: &str) -> Url {
        let mut url = self.below(CHALLENGE_PATH);
        url.query_pairs_mut().append_pair("challenge", challenge);
        url
    }

    /// Where the worker says what lives in it (W10.3).
    #[must_use]
    pub fn stats(&self) -> Url {
        self.below(STATS_PATH)
    }

    fn below(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        let prefix = self.url.path().trim_end_matches('/');
        url.set_path(&format!("{prefix}{path}"));
        url
    }
}

impl std::fmt::Debug for AdvertisedUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.given)
    }
}

#[cfg(test)]
mod tests {
    use super::AdvertisedUrl;

    #[test]
    fn the_path_of_the_url_comes_before_the_workers_own_routes() {
        for (given, asked) in [
            ("http://w:8000", "http://w:8000/_pinned/stats"),
            ("http://w:8000/", "http://w:8000/_pinned/stats"),
            ("https://w/a/b//", "https://w/a/b/_pinned/stats"),
            ("http://w/%2Fa%20b", "http://w/%2Fa%20b/_pinned/stats"),
            ("http://[::1]:8000", "http://[::1]:8000/_pinned/stats"),
        ] {
            let url = AdvertisedUrl::parse(given).expect("a URL");
            assert_eq!(url.stats().as_str(), asked);
            assert_eq!(url.as_str(), given);
        }
    }

    #[test]
    fn what_is_not_plainly_the_url_of_a_server_is_refused() {
        for given in [
            "",
            "worker:8000",
            "10.0.0.1:8000",
            "/path",
            "ftp://w",
            "file:///etc/passwd",
            "unix:/run/w.sock",
            "http://",
            "http://w:0",
            "http://w:65536",
            "http://u@w",
            "http://:p@w",
            "http://w?x",
            "http://w#x",
            "http://w/a b",
            " http://w",
            "http://w\r\nx: y",
            "http:\\\\w",
            "http://w%00",
            "http://a..b:x",
        ] {
            assert!(AdvertisedUrl::parse(given).is_err(), "{given:?}");
        }
        assert!(AdvertisedUrl::parse(&format!("http://w/{}", "a".repeat(2048))).is_err());
    }
}
