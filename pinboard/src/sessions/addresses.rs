//! Which addresses an advertised URL may lead to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::passport::{BackendHostRule, Grants};

/// Addresses that are nobody's worker, but may be the metadata service of a cloud, or many machines at once. A name or `*` does
/// not admit them; only an entry that lies within the range does.
const SPECIAL: [IpNet; 7] = [
    v4([169, 254, 0, 0], 16),
    v4([224, 0, 0, 0], 4),
    v4([0, 0, 0, 0], 8),
    v4([255, 255, 255, 255], 32),
    v6(0xfe80, 10),
    v6(0xff00, 8),
    v6(0, 128),
];

const fn v4([a, b, c, d]: [u8; 4], length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length))
}

const fn v6(first: u16, length: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new_assert(
        Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0),
        length,
    ))
}

/// Whether `grants` let a worker that advertises `host` be at `address`.
pub(crate) fn may_be_at(grants: &Grants, host: &str, address: IpAddr) -> bool {
    // An IPv4 address in the clothes of an IPv6 one leads to the same machine.
    let address = address.to_canonical();
    if !grants.allows_address(host, address) {
        return false;
    }
    std::iter::once(address)
        .chain(translated(address))
        .all(|address| {
            SPECIAL
                .iter()
                .filter(|special| special.contains(&address))
                .all(|special| names_some_of(grants, special, address))
        })
}

/// Whether an entry within `special` admits `address`.
fn names_some_of(grants: &Grants, special: &IpNet, address: IpAddr) -> bool {
    grants.backend_hosts.iter().any(|rule| match rule {
        BackendHostRule::Block(block) => special.contains(block) && block.contains(&address),
        BackendHostRule::Any | BackendHostRule::Name(_) => false,
    })
}

/// The IPv4 address that a NAT64 gateway would make of an IPv6 one (RFC 6052).
fn translated(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() else {
        return None;
    };
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(rules: &[&str]) -> Grants {
        let backend_hosts = rules.iter().map(|rule| match *rule {
            "*" => BackendHostRule::Any,
            rule => match (rule.parse::<IpNet>(), rule.parse::<IpAddr>()) {
                (Ok(block), _) => BackendHostRule::Block(block),
                (_, Ok(address)) => BackendHostRule::Block(address.into()),
                _ => BackendHostRule::Name(rule.to_owned()),
            },
        });
        Grants {
            backend_hosts: backend_hosts.collect(),
            ..Grants::default()
        }
    }

    fn allows(rules: &[&str], host: &str, address: &str) -> bool {
        may_be_at(&grants(rules), host, address.parse().expect("an address"))
    }

    // P2.2
    #[test]
    fn an_address_must_match_an_entry() {
        assert!(allows(&["10.0.0.0/8"], "worker", "10.1.2.3"));
        assert!(allows(&["10.1.2.3"], "10.1.2.3", "10.1.2.3"));
        assert!(!allows(&["10.0.0.0/8"], "worker", "11.1.2.3"));
        assert!(allows(&["worker"], "worker", "11.1.2.3"));
        assert!(allows(&["*"], "worker", "11.1.2.3"));
        assert!(!allows(&[], "worker", "11.1.2.3"));
        assert!(allows(&["10.0.0.0/8"], "worker", "::ffff:10.1.2.3"));
        assert!(!allows(&["::/0"], "worker", "::ffff:10.1.2.3"));
    }

    #[test]
    fn special_addresses_need_an_entry_of_their_own() {
        let special = [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "224.0.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "fe80::1",
            "ff02::1",
            "::",
        ];
        for address in special {
            for rules in [["*"], ["metadata"], ["0.0.0.0/0"], ["::/0"], ["0.0.0.0/1"]] {
                assert!(
                    !allows(&rules, "metadata", address),
                    "{address} by {rules:?}"
                );
            }
        }
        assert!(allows(&["169.254.7.0/24"], "worker", "169.254.7.1"));
        assert!(!allows(&["169.254.7.0/24"], "worker", "169.254.169.254"));
        assert!(allows(&["fe80::/10"], "worker", "fe80::1"));
        assert!(allows(&["127.0.0.0/8"], "worker", "127.0.0.1"));
        assert!(allows(&["*"], "localhost", "::1"));
    }
}
