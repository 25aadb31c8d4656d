//! Addresses that no worker has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A kind of address that only an entry about that very kind allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// What such addresses are.
    pub(super) name: &'static str,
    /// All of them.
    pub(super) block: IpNet,
}

/// Where clouds keep the credentials of their machines is here too, as far as it is not link-local anyway.
static KINDS: [Kind; 10] = [
    v4("of no host", [0, 0, 0, 0], 8),
    v4("link-local", [169, 254, 0, 0], 16),
    v4("multicast", [224, 0, 0, 0], 4),
    v4("reserved", [240, 0, 0, 0], 4),
    v4("of a cloud's metadata", [100, 100, 100, 200], 32),
    // The unspecified address among them.
    v6("of no host or IPv4-compatible", [0; 8], 96),
    v6("link-local", [0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    v6("multicast", [0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
    v6(
        "of a cloud's metadata",
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
        128,
    ),
    v6(
        "of a cloud's metadata",
        [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254],
        128,
    ),
];

/// Addresses behind which a gateway puts IPv4 ones, and how many bits come after those.
static GATEWAYS: [(Kind, u32); 2] = [
    (v6("behind NAT64", [0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), 0),
    (v6("behind 6to4", [0x2002, 0, 0, 0, 0, 0, 0, 0], 16), 80),
];

/// The kind of an address, where it has one; `address` is canonical, an IPv4 one never written as IPv6.
pub(super) fn kind_of(address: IpAddr) -> Option<Kind> {
    // The one address among the IPv4-compatible ones that a worker may have.
    if address == Ipv6Addr::LOCALHOST {
        return None;
    }
    let direct = KINDS.iter().find(|kind| kind.block.contains(&address));
    direct.copied().or_else(|| {
        let IpAddr::V6(six) = address else {
            return None;
        };
        let (gateway, behind) = GATEWAYS
            .iter()
            .find(|(gateway, _)| gateway.block.contains(&address))?;
        let four = Ipv4Addr::from_bits((six.to_bits() >> behind) as u32);
        kind_of(four.into()).map(|_| *gateway)
    })
}

const fn v4(name: &'static str, address: [u8; 4], prefix: u8) -> Kind {
    let [a, b, c, d] = address;
    Kind {
        name,
        block: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)),
    }
}

const fn v6(name: &'static str, address: [u16; 8], prefix: u8) -> Kind {
    let [a, b, c, d, e, f, g, h] = address;
    Kind {
        name,
        block: IpNet::V6(Ipv6Net::new_assert(
            Ipv6Addr::new(a, b, c, d, e, f, g, h),
            prefix,
        )),
    }
}
