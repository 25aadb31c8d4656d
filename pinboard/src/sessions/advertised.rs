//! The URL that a worker advertises.

use std::net::{IpAddr, SocketAddr};

use pinned_wire::registry::{CHALLENGE_PATH, STATS_PATH};
use url::{Host, Url};

/// The longest URL that is taken, in bytes.
const LONGEST: usize = 2048;

/// A URL is not one that a worker can advertise; it says why, and does not show the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadUrl(&'static str);

/// The URL that a worker advertises: `http` or `https`, a host, perhaps a port, perhaps a path that comes before every other.
///
/// ```
/// use pinboard::sessions::AdvertisedUrl;
///
/// let url = AdvertisedUrl::parse("http://10.0.3.7:8000/app/").unwrap();
/// assert_eq!(url.challenge("a b").as_str(), "http://10.0.3.7:8000/app/_pinned/challenge?challenge=a+b");
/// assert!(AdvertisedUrl::parse("http://user:password@10.0.3.7").is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AdvertisedUrl {
    given: String,
    url: Url,
    host: String,
    address: Option<IpAddr>,
    port: u16,
}

impl AdvertisedUrl {
    /// Reads one.
    ///
    /// # Errors
    ///
    /// [`BadUrl`] for anything that is not plainly such a URL.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        if text.len() > LONGEST {
            return Err(BadUrl("expected a URL of at most 2048 bytes"));
        }
        // The parser would quietly drop these, and turn backslashes into slashes.
        if text.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
            return Err(BadUrl(
                "expected a URL without white space, control characters and backslashes",
            ));
        }
        let url = Url::parse(text).map_err(|_| BadUrl("expected an http or https URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUrl("expected an http or https URL"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadUrl("expected a URL without a user or a password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BadUrl("expected a URL without a query and a fragment"));
        }
        let (host, address) = match url.host() {
            Some(Host::Domain(name)) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                (name.to_ascii_lowercase(), None)
            }
            Some(Host::Ipv4(address)) => (address.to_string(), Some(address.into())),
            Some(Host::Ipv6(address)) => (address.to_string(), Some(address.into())),
            None => return Err(BadUrl("expected a URL with a host")),
        };
        let port = match url.port_or_known_default() {
            Some(port) if port != 0 => port,
            _ => return Err(BadUrl("expected a URL whose port is not 0")),
        };
        Ok(Self {
            given: text.to_owned(),
            url,
            host,
            address,
            port,
        })
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.given
    }

    /// The name of the host, in lower case and without a dot at its end; or its address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address, when the URL has one in place of a name.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
            .map(|address| SocketAddr::new(address, self.port))
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
    fn hosts_are_read_as_they_will_be_dialled() {
        for (given, host) in [
            ("http://Worker.Example.", "worker.example"),
            ("http://0x7f.1:80", "127.0.0.1"),
            ("http://2852039166", "169.254.169.254"),
            ("http://[::FFFF:7f00:1]", "::ffff:127.0.0.1"),
        ] {
            assert_eq!(AdvertisedUrl::parse(given).expect("a URL").host(), host);
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
