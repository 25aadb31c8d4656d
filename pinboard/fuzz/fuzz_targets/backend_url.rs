//! No advertised URL makes the check panic; what is dialled is what was resolved, and is allowed by an entry. An entry reads as it is
//! written.

#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use pinboard::passport::{BackendHostRule, Grants, check_addresses, parse_backend_url};

fuzz_target!(|input: (&str, Vec<&str>, [u8; 4], [u16; 8])| {
    let (url, entries, four, six) = input;
    let [a, b, c, d, e, f, g, h] = six;
    let resolved: [IpAddr; 2] = [
        Ipv4Addr::from(four).into(),
        Ipv6Addr::new(a, b, c, d, e, f, g, h).into(),
    ];

    let rules: Vec<BackendHostRule> = entries
        .iter()
        .filter_map(|entry| entry.parse().ok())
        .collect();
    for rule in &rules {
        assert_eq!(rule.to_string().parse().as_ref(), Ok(rule));
    }
    let Ok(url) = parse_backend_url(url) else {
        return;
    };
    assert!(matches!(url.scheme(), "http" | "https") && url.has_host());
    assert!(url.username().is_empty() && url.password().is_none());
    assert!(url.query().is_none() && url.fragment().is_none());
    assert_eq!(parse_backend_url(url.as_str()).ok().as_ref(), Some(&url));

    let grants = Grants {
        backend_hosts: rules,
        ..Grants::default()
    };
    let everything = Grants::all();
    let itself = url.host().and_then(|host| match host {
        url::Host::Domain(_) => None,
        url::Host::Ipv4(address) => Some(IpAddr::V4(address)),
        url::Host::Ipv6(address) => Some(IpAddr::V6(address)),
    });
    for grants in [&grants, &everything] {
        let Ok(dialled) = check_addresses(&url, grants, &resolved) else {
            continue;
        };
        assert!(!dialled.is_empty() && !grants.backend_hosts.is_empty());
        for address in dialled {
            let known = |known: IpAddr| known.to_canonical() == address.ip();
            assert!(itself.map_or_else(|| resolved.into_iter().any(known), known));
            assert_eq!(Some(address.port()), url.port_or_known_default());
            // Link-local ones only when an entry is about them.
            let link_local = matches!(address.ip(), IpAddr::V4(four) if four.is_link_local());
            assert!(!link_local || *grants != everything);
        }
    }
});
