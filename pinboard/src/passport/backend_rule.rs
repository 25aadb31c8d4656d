//! The entries of `allowedBackendHosts`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use url::Host;

/// One entry of `allowedBackendHosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendHostRule {
    /// `*`.
    Any,
    /// A hostname, in lower case, as it is resolved (punycode), without a dot at its end.
    Name(String),
    /// An address or a block of them; never one of IPv4 addresses that are written as IPv6.
    Block(IpNet),
}

/// The text is no entry of `allowedBackendHosts`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`*`, a hostname, an address, or a block of addresses such as 10.0.0.0/8{hint}")]
pub struct NotABackendHost {
    hint: String,
}

impl FromStr for BackendHostRule {
    type Err = NotABackendHost;

    /// Reads `*`, `worker.internal`, `10.1.2.3`, `10.0.0.0/8`, `fd00::1`, `[fd00::1]` or `fd00::/8`.
    ///
    /// What could mean more than one thing is refused: a block with bits behind its prefix, an address in octal, and a name with
    /// a wildcard in it.
    fn from_str(text: &str) -> Result<Self, NotABackendHost> {
        if text == "*" {
            Ok(Self::Any)
        } else if let Some(address) = address(text) {
            Ok(Self::Block(address.to_canonical().into()))
        } else if text.contains('/') {
            block(text).map(Self::Block)
        } else {
            name(text).map(Self::Name)
        }
    }
}

impl fmt::Display for BackendHostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Name(name) => f.write_str(name),
            Self::Block(block) if block.prefix_len() == block.max_prefix_len() => {
                block.addr().fmt(f)
            }
            Self::Block(block) => block.fmt(f),
        }
    }
}

/// A domain of the URL standard as names are compared, without the dot of a full name; `None` when it is no hostname.
pub(super) fn hostname(domain: &str) -> Option<&str> {
    let name = domain.strip_suffix('.').unwrap_or(domain);
    let is_name = !name.contains('*') && !name.split('.').any(str::is_empty);
    is_name.then_some(name)
}

fn address(text: &str) -> Option<IpAddr> {
    match text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        Some(text) => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse().ok(),
    }
}

fn block(text: &str) -> Result<IpNet, NotABackendHost> {
    let block: IpNet = text.parse().map_err(|_| hint(""))?;
    let whole = block.trunc();
    if whole.addr() != block.addr() {
        return Err(hint(format!("; did you mean {whole}?")));
    }
    Ok(canonical(whole))
}

/// `::ffff:10.0.0.0/104` is `10.0.0.0/8`: addresses are compared as IPv4 wherever they are.
fn canonical(block: IpNet) -> IpNet {
    let IpNet::V6(six) = block else { return block };
    let (Some(four), Some(prefix)) = (
        six.addr().to_ipv4_mapped(),
        six.prefix_len().checked_sub(MAPPED_PREFIX),
    ) else {
        return block;
    };
    Ipv4Net::new(four, prefix).map_or(block, IpNet::V4)
}

/// The length of the prefix that IPv4 addresses have as IPv6 ones.
const MAPPED_PREFIX: u8 = (Ipv6Addr::BITS - Ipv4Addr::BITS) as u8;

fn name(text: &str) -> Result<String, NotABackendHost> {
    match Host::parse(text) {
        Ok(Host::Domain(name)) => hostname(&name).map(str::to_owned).ok_or_else(|| hint("")),
        // Not the spelling of an address that everything reads alike.
        Ok(Host::Ipv4(address)) => Err(hint(format!("; did you mean {address}?"))),
        Ok(Host::Ipv6(_)) | Err(_) => Err(hint("")),
    }
}

fn hint(hint: impl Into<String>) -> NotABackendHost {
    NotABackendHost { hint: hint.into() }
}
