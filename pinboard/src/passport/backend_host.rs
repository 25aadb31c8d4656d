//! Whether a worker may advertise a URL, and which addresses are dialled for it (P2.2).
//!
//! What is checked is what is dialled: the host is resolved here once, every address behind it has to be allowed, and those addresses
//! are the only ones that connections are made to. A name that resolves to something else a moment later changes nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinned_domain::Domain;
use url::{Host, Url};

use super::{Grants, backend_rule, special};

/// How long a name may take to be resolved.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most addresses that a name may have.
const MAX_ADDRESSES: usize = 64;

/// Finds the addresses behind a hostname.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses behind `host`, which is a name rather than an address.
    ///
    /// # Errors
    ///
    /// The name could not be resolved.
    fn resolve(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// A URL that a worker may not advertise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendHostError {
    /// It is no URL of a worker, for anyone.
    #[error("advertiseUrl {0}")]
    Malformed(&'static str),
    /// The claims do not allow its host, or an address behind it.
    #[error("advertiseUrl: {}", refusal(host, *address))]
    NotAllowed {
        /// The host as advertised.
        host: String,
        /// The address behind it that is not allowed, when it got that far.
        address: Option<IpAddr>,
    },
    /// There are no addresses, or not now.
    #[error("advertiseUrl: {host} cannot be resolved")]
    Unresolvable {
        /// The host as advertised.
        host: String,
        /// The cause.
        source: io::Error,
    },
}

/// Reads the URL that a worker advertises: `http` or `https`, a host and a port, and a path that comes before every request's.
///
/// An address in another spelling (octal, hexadecimal, one number) is read as everything that dials it would.
///
/// # Errors
///
/// [`BackendHostError::Malformed`].
pub fn parse_backend_url(text: &str) -> Result<Url, BackendHostError> {
    // The parser drops these silently; nobody who means well sends them.
    if text.contains(|char: char| char.is_whitespace() || char.is_control()) {
        return Err(malformed("must be a URL without spaces and line ends"));
    }
    let url = Url::parse(text).map_err(|_| malformed("must be an http or https URL"))?;
    check_shape(&url)?;
    Ok(url)
}

/// The addresses behind a worker's URL, all of which `grants` allows; the only ones to be dialled for it.
///
/// # Errors
///
/// As [`BackendHostError`] says.
///
/// # Cancel safety
///
/// Cancel safe.
pub async fn allowed_addresses(
    url: &Url,
    grants: &Grants,
    resolve: &dyn Resolve,
    domain: &Domain,
) -> Result<Vec<SocketAddr>, BackendHostError> {
    let resolved = match check_shape(url)? {
        Host::Ipv4(_) | Host::Ipv6(_) => Vec::new(),
        Host::Domain(name) => {
            // A lookup tells the name's owner that it was made.
            if !grants.may_allow(comparable(name)) {
                return Err(not_allowed(name, None));
            }
            let unresolvable = |source| BackendHostError::Unresolvable {
                host: name.to_owned(),
                source,
            };
            let lookup = domain.timeout(RESOLVE_TIMEOUT, resolve.resolve(name));
            match lookup.await {
                Ok(addresses) => addresses.map_err(unresolvable)?,
                Err(elapsed) => {
                    return Err(unresolvable(io::Error::new(
                        io::ErrorKind::TimedOut,
                        elapsed,
                    )));
                }
            }
        }
    };
    check_addresses(url, grants, &resolved)
}

/// As [`allowed_addresses`], with what the name in the URL was `resolved` to; an address in it stands for itself.
///
/// # Errors
///
/// As [`BackendHostError`] says.
pub fn check_addresses(
    url: &Url,
    grants: &Grants,
    resolved: &[IpAddr],
) -> Result<Vec<SocketAddr>, BackendHostError> {
    let host = check_shape(url)?;
    let itself = match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some([IpAddr::V4(address)]),
        Host::Ipv6(address) => Some([IpAddr::V6(address)]),
    };
    let resolved = itself.as_ref().map_or(resolved, |itself| itself);
    let name = host.to_string();
    let unresolvable = |kind: io::ErrorKind, reason: &'static str| BackendHostError::Unresolvable {
        host: name.clone(),
        source: io::Error::new(kind, reason),
    };
    if resolved.is_empty() {
        return Err(unresolvable(io::ErrorKind::NotFound, "it has no address"));
    }
    if resolved.len() > MAX_ADDRESSES {
        return Err(unresolvable(
            io::ErrorKind::InvalidData,
            "it has too many addresses",
        ));
    }
    let port = url.port_or_known_default().unwrap_or_default();
    let mut addresses = Vec::with_capacity(resolved.len());
    for address in resolved {
        // As it is compared, so it is dialled.
        let address = address.to_canonical();
        if !grants.allows_address(comparable(&name), address) {
            return Err(not_allowed(&name, Some(address)));
        }
        let address = SocketAddr::new(address, port);
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

fn check_shape(url: &Url) -> Result<Host<&str>, BackendHostError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(malformed("must be an http or https URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(malformed("must not have a user or a password in it"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(malformed("must not have a query or a fragment"));
    }
    if url.port() == Some(0) {
        return Err(malformed("must not have the port 0"));
    }
    match url.host() {
        Some(Host::Domain(name)) if backend_rule::hostname(name).is_none() => {
            Err(malformed("must have a hostname or an address"))
        }
        Some(host) => Ok(host),
        None => Err(malformed("must have a hostname or an address")),
    }
}

/// A host as the entries of the claims are written.
fn comparable(host: &str) -> &str {
    backend_rule::hostname(host).unwrap_or(host)
}

fn malformed(reason: &'static str) -> BackendHostError {
    BackendHostError::Malformed(reason)
}

fn not_allowed(host: &str, address: Option<IpAddr>) -> BackendHostError {
    BackendHostError::NotAllowed {
        host: host.to_owned(),
        address,
    }
}

fn refusal(host: &str, address: Option<IpAddr>) -> String {
    let Some(address) = address else {
        return format!("{host} is not among the allowedBackendHosts");
    };
    let behind = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(_) => address.to_string(),
        Err(_) => format!("{address}, behind {host},"),
    };
    match special::kind_of(address) {
        Some(kind) => format!(
            "{behind} is {}, and no allowedBackendHosts entry is about such addresses",
            kind.name
        ),
        None => format!("{behind} is not among the allowedBackendHosts"),
    }
}
