//! Where the Redis is.

use std::fmt;

use pinned_wire::registry::Secret;
use url::Url;

/// The URL of a Redis, which may hold a password. Its `Debug` shows no secrets.
#[derive(Clone)]
pub struct RedisUrl {
    url: Secret,
    place: String,
}

const SCHEMES: [&str; 4] = ["redis", "rediss", "redis+cluster", "rediss+cluster"];

impl RedisUrl {
    /// Reads one; `None` when it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        if !SCHEMES.contains(&url.scheme()) || url.port() == Some(0) {
            return None;
        }
        let host = url.host_str().filter(|host| !host.is_empty())?;
        let (scheme, port) = (url.scheme(), url.port().unwrap_or(6379));
        Some(Self {
            place: format!("{scheme}://{host}:{port}{}", url.path()),
            url: Secret::new(text),
        })
    }

    /// The whole URL, for connecting.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.url.expose()
    }
}

impl fmt::Display for RedisUrl {
    /// Scheme, host, port and database.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisUrl").field(&self.place).finish()
    }
}
