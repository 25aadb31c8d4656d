//! What `claims.pinboard` lets a principal do.

use std::net::IpAddr;

use pinboard::passport::{BackendHostRule, Grants, Passport};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{passport, who};

fn grants(pinboard: Value) -> Grants {
    let json = json!({"providers": [{"type": "staticToken", "id": "p", "keys": [
        {"name": "a", "token": "t", "claims": {"pinboard": pinboard}}]}]});
    let passport: Passport = passport(&json).expect("a passport");
    let principal = futures_util::FutureExt::now_or_never(who(&passport, "t"));
    let principal = principal.expect("ready").expect("known");
    Grants::clone(&principal.grants)
}

fn rule(text: &str) -> BackendHostRule {
    text.parse().expect(text)
}

// P2.2
#[test]
fn a_missing_list_admits_nothing() {
    for grants in [grants(json!({})), Grants::default()] {
        assert!(!grants.covers_namespace("/threads"));
        assert!(!grants.covers_hostname("example.com") && !grants.covers_env("staging"));
        assert!(!grants.allows_address("localhost", [127, 0, 0, 1].into()));
        assert!(!grants.is_unrestricted());
        // Not asked in single mode, where both are `*`.
        assert!(grants.covers_hostname("*") && grants.covers_env("*"));
    }
}

// P2.2
#[test]
fn namespaces_are_exact_or_all() {
    let some = grants(json!({"namespaces": ["/threads", "/rooms"]}));
    for (ns, covered) in [
        ("/threads", true),
        ("/rooms", true),
        ("/thread", false),
        ("/threads2", false),
        ("threads", false),
        ("/Threads", false),
        ("*", false),
        ("", false),
    ] {
        assert_eq!(some.covers_namespace(ns), covered, "{ns}");
    }
    assert!(!some.is_unrestricted());
    assert!(grants(json!({"namespaces": ["/a", "*"]})).covers_namespace("/threads"));
}

// P2.2
#[test]
fn hostnames_are_exact_suffixes_or_all() {
    let some = grants(
        json!({"hostnames": ["App.Example.com", ".preview.example.com", "bücher.example."]}),
    );
    assert_eq!(
        some.hostnames,
        [
            "app.example.com",
            ".preview.example.com",
            "xn--bcher-kva.example"
        ]
    );
    for (hostname, covered) in [
        ("app.example.com", true),
        ("pr-42.preview.example.com", true),
        ("a.b.preview.example.com", true),
        ("xn--bcher-kva.example", true),
        ("preview.example.com", false),
        (".preview.example.com", false),
        ("evilpreview.example.com", false),
        ("preview.example.com.evil", false),
        ("example.com", false),
        ("", false),
    ] {
        assert_eq!(some.covers_hostname(hostname), covered, "{hostname}");
    }
    let addresses = grants(json!({"hostnames": ["127.0.0.1", "[::1]"]}));
    assert!(addresses.covers_hostname("127.0.0.1") && addresses.covers_hostname("[::1]"));
}

// P3.3: metrics are for those from whom nothing is kept
#[test]
fn unrestricted_is_who_may_see_every_namespace() {
    let all = json!({"namespaces": ["*"], "hostnames": ["*"], "envs": ["*"]});
    for (lists, single, everywhere) in [
        (all.clone(), true, true),
        (json!({"namespaces": ["*"]}), true, false),
        (
            json!({"namespaces": ["*"], "hostnames": [".example.com"], "envs": ["*"]}),
            true,
            false,
        ),
        (
            json!({"namespaces": ["*"], "hostnames": ["*"], "envs": ["staging"]}),
            true,
            false,
        ),
        (
            json!({"namespaces": ["/threads"], "hostnames": ["*"], "envs": ["*"]}),
            false,
            false,
        ),
        (json!({"allowedBackendHosts": ["*"]}), false, false),
        (json!({}), false, false),
    ] {
        let grants = grants(lists.clone());
        assert_eq!(grants.is_unrestricted(), single, "{lists}");
        assert_eq!(
            grants.is_unrestricted_in_every_hostname(),
            everywhere,
            "{lists}"
        );
    }
    assert!(Grants::all().is_unrestricted_in_every_hostname());
}

// P2.2
#[test]
fn backend_hosts_are_read_in_one_form() {
    for (text, form) in [
        ("*", "*"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.2.3/32", "10.1.2.3"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("FD00::/8", "fd00::/8"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("[::ffff:a01:203]", "10.1.2.3"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::/0", "::/0"),
        ("Worker-1.Internal", "worker-1.internal"),
        ("worker.internal.", "worker.internal"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("under_score.internal", "under_score.internal"),
        ("localhost", "localhost"),
    ] {
        assert_eq!(rule(text).to_string(), form, "{text}");
        assert_eq!(rule(form), rule(text), "{text}");
    }
}

// P2.2
#[test]
fn what_is_no_backend_host_is_refused() {
    for text in [
        "",
        " ",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/",
        "/8",
        "10.0.0.1/8",
        "fd00::1/8",
        "10.0.0.0/255.0.0.0",
        "010.0.0.1",
        "0x7f.0.0.1",
        "2130706433",
        "127.1",
        "10.0.0.256",
        "[10.0.0.1]",
        "[::1",
        "::1]",
        "fe80::1%eth0",
        "*.internal",
        "**",
        "worker:8000",
        "[::1]:8000",
        "http://worker",
        "worker/path",
        "user@worker",
        "two words",
        "a..b",
        ".internal",
        ".",
        "a\nb",
    ] {
        let read = text.parse::<BackendHostRule>();
        assert!(read.is_err(), "{text:?} is read as {read:?}");
    }
}

// P2.2
#[test]
fn an_address_is_allowed_by_its_block_its_name_or_all() {
    let some = grants(json!({"allowedBackendHosts":
        ["10.0.0.0/8", "fd00::/8", "192.0.2.7", "Worker.Internal."]}));
    for (host, address, allowed) in [
        ("any", "10.255.0.1", true),
        ("any", "::ffff:10.255.0.1", true),
        ("any", "fd12::1", true),
        ("any", "192.0.2.7", true),
        ("any", "11.0.0.1", false),
        ("any", "192.0.2.8", false),
        ("any", "fe00::1", false),
        // The compatible form is not the mapped one.
        ("any", "::10.0.0.1", false),
        ("worker.internal", "203.0.113.1", true),
        ("worker.internal.evil", "203.0.113.1", false),
    ] {
        let address: IpAddr = address.parse().expect("an address");
        assert_eq!(
            some.allows_address(host, address),
            allowed,
            "{host} {address}"
        );
    }
    // Addresses are compared as IPv4, so a block of IPv6 ones is not about them.
    let six = grants(json!({"allowedBackendHosts": ["::/0"]}));
    assert!(!six.allows_address("any", [10, 0, 0, 1].into()));
}

/// `address` as IPv6.
fn mapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped().into(),
        six @ IpAddr::V6(_) => six,
    }
}

proptest! {
    #[test]
    fn a_rule_reads_as_it_is_written(address: IpAddr, prefix in 0_u8..=128) {
        let prefix = prefix.min(if address.is_ipv4() { 32 } else { 128 });
        let block = ipnet::IpNet::new(address, prefix).expect("a prefix that fits").trunc();
        let rule: BackendHostRule = block.to_string().parse().expect("a block");
        prop_assert_eq!(rule.to_string().parse(), Ok(rule));
    }

    #[test]
    fn an_address_is_allowed_in_either_of_its_forms_or_in_none(
        address: IpAddr, block: std::net::Ipv4Addr, prefix in 0_u8..=32,
    ) {
        let block = ipnet::Ipv4Net::new(block, prefix).expect("a prefix that fits").trunc();
        let grants = Grants {
            backend_hosts: vec![BackendHostRule::Block(block.into())],
            ..Grants::default()
        };
        prop_assert_eq!(
            grants.allows_address("any", address),
            grants.allows_address("any", mapped(address))
        );
    }

    #[test]
    fn any_text_is_a_rule_or_an_error(text: String) {
        if let Ok(rule) = text.parse::<BackendHostRule>() {
            prop_assert_eq!(rule.to_string().parse(), Ok(rule));
        }
    }
}
