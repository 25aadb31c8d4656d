//! Where Redis is.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use url::Url;

const DEFAULT_PORT: u16 = 6379;

/// Where Redis is, as `REDIS_URL` says it (P1.3): `redis://`, `rediss://` (TLS), `redis+cluster://` or
/// `rediss+cluster://`, then `[[user]:password@]host[:port][/database]`. A cluster may have several hosts, with commas
/// between them, and no database.
///
/// The user name and the password are never shown.
///
/// ```
/// use pinboard::store::RedisUrl;
///
/// let url: RedisUrl = "rediss+cluster://:sesame@[::1]:7000,cache.example".parse()?;
/// assert_eq!(url.to_string(), "rediss+cluster://[::1]:7000,cache.example:6379");
/// # Ok::<(), pinboard::store::InvalidRedisUrl>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    pub(super) seeds: Vec<Address>,
    pub(super) cluster: bool,
    pub(super) tls: bool,
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: u16,
}

/// A text is no [`RedisUrl`]. It says why, without the text: that may have a password in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRedisUrl(&'static str);

/// One server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Address {
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
}

// ===== impl RedisUrl =====

impl FromStr for RedisUrl {
    type Err = InvalidRedisUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or(InvalidRedisUrl("it has no scheme, such as redis://"))?;
        let (tls, cluster) = match scheme {
            "redis" => (false, false),
            "rediss" => (true, false),
            "redis+cluster" => (false, true),
            "rediss+cluster" => (true, true),
            _ => {
                return Err(InvalidRedisUrl(
                    "its scheme is not one of redis, rediss, redis+cluster, rediss+cluster",
                ));
            }
        };
        if rest.contains(['?', '#']) {
            return Err(InvalidRedisUrl(
                "it takes no options after '?' or '#' (in a password, write %3F and %23)",
            ));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (username, password) = login.map_or(Ok((None, None)), credentials)?;
        let database = match path.trim_end_matches('/') {
            "" => 0,
            path => path
                .parse()
                .map_err(|_| InvalidRedisUrl("its path is not the number of a database"))?,
        };
        let seeds = if cluster {
            hosts
                .split(',')
                .map(Address::parse)
                .collect::<Result<_, _>>()?
        } else if hosts.contains(',') {
            return Err(InvalidRedisUrl(
                "several hosts are for clusters: redis+cluster:// or rediss+cluster://",
            ));
        } else {
            vec![Address::parse(hosts)?]
        };
        if cluster && database != 0 {
            return Err(InvalidRedisUrl("a cluster has no databases but 0"));
        }
        Ok(Self {
            seeds,
            cluster,
            tls,
            username,
            password,
            database,
        })
    }
}

/// `[user]:password`, percent-decoded.
fn credentials(login: &str) -> Result<(Option<String>, Option<String>), InvalidRedisUrl> {
    let (username, password) = login
        .split_once(':')
        .ok_or(InvalidRedisUrl("its user name has no password after it"))?;
    let decode = |text: &str| {
        percent_decode_str(text)
            .decode_utf8()
            .map(|text| (!text.is_empty()).then(|| text.into_owned()))
            .map_err(|_| InvalidRedisUrl("its user name or password is not UTF-8"))
    };
    let (username, password) = (decode(username)?, decode(password)?);
    if username.is_some() && password.is_none() {
        return Err(InvalidRedisUrl("its user name has no password after it"));
    }
    Ok((username, password))
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.tls, self.cluster) {
            (false, false) => "redis://",
            (true, false) => "rediss://",
            (false, true) => "redis+cluster://",
            (true, true) => "rediss+cluster://",
        })?;
        for (n, seed) in self.seeds.iter().enumerate() {
            write!(f, "{}{seed}", if n == 0 { "" } else { "," })?;
        }
        match self.database {
            0 => Ok(()),
            database => write!(f, "/{database}"),
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

// ===== impl Address =====

impl Address {
    fn parse(text: &str) -> Result<Self, InvalidRedisUrl> {
        let invalid = InvalidRedisUrl("a host or its port is malformed");
        if text.is_empty() || text.contains('@') {
            return Err(invalid);
        }
        let url = Url::parse(&format!("redis://{text}")).map_err(|_| invalid)?;
        // What the parser takes out of an opaque host, it would take out silently.
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(invalid);
        }
        let host = match url.host() {
            Some(url::Host::Domain(name)) if !name.is_empty() => name.to_owned(),
            Some(url::Host::Ipv4(ip)) => ip.to_string(),
            Some(url::Host::Ipv6(ip)) => ip.to_string(),
            _ => return Err(invalid),
        };
        Ok(Self {
            host,
            port: match url.port() {
                Some(0) => return Err(invalid),
                Some(port) => port,
                None => DEFAULT_PORT,
            },
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
