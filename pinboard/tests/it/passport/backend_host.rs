//! Whether a worker may advertise a URL, and which addresses are dialled for it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{self, BoxFuture, FutureExt as _};
use pinboard::passport::{
    BackendHostError, BackendHostRule, Grants, Resolve, allowed_addresses, check_addresses,
    parse_backend_url,
};
use pinned_domain::Domain;
use pinned_testing::sim::Sim;
use proptest::prelude::*;

fn grants(entries: &[&str]) -> Grants {
    Grants {
        backend_hosts: entries
            .iter()
            .map(|entry| entry.parse().expect(entry))
            .collect(),
        ..Grants::default()
    }
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().expect(text)).collect()
}

/// What comes of a URL whose name resolves to these.
fn check(
    url: &str,
    entries: &[&str],
    resolved: &[&str],
) -> Result<Vec<SocketAddr>, BackendHostError> {
    check_addresses(
        &parse_backend_url(url)?,
        &grants(entries),
        &addresses(resolved),
    )
}

#[track_caller]
fn assert_allowed(url: &str, entries: &[&str], resolved: &[&str], dialled: &[&str]) {
    let dialled: Vec<SocketAddr> = dialled
        .iter()
        .map(|text| text.parse().expect(text))
        .collect();
    match check(url, entries, resolved) {
        Ok(addresses) => assert_eq!(addresses, dialled, "{url} {entries:?}"),
        Err(error) => panic!("{url} {entries:?}: {error}"),
    }
}

#[track_caller]
fn assert_refused(url: &str, entries: &[&str], resolved: &[&str], message: &str) {
    match check(url, entries, resolved) {
        Ok(addresses) => panic!("{url} {entries:?} is allowed: {addresses:?}"),
        Err(error) => assert_eq!(error.to_string(), message, "{url} {entries:?}"),
    }
}

/// Answers every name with these, and counts.
#[derive(Default)]
struct Names(Vec<IpAddr>, AtomicUsize);

impl Resolve for Names {
    fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        future::ready(Ok(self.0.clone())).boxed()
    }
}

// P2.2
#[test]
fn a_url_is_a_scheme_a_host_and_a_path() {
    for url in [
        "http://worker:8000",
        "https://worker.internal/",
        "http://10.0.0.1:8000/prefix/",
        "http://[fd00::1]:8000",
        "HTTP://WORKER",
        "http://bücher.example",
    ] {
        assert!(parse_backend_url(url).is_ok(), "{url}");
    }
    for (url, reason) in [
        ("", "must be an http or https URL"),
        ("worker:8000", "must be an http or https URL"),
        ("//worker:8000", "must be an http or https URL"),
        ("ftp://worker", "must be an http or https URL"),
        ("ws://worker", "must be an http or https URL"),
        ("file:///etc/passwd", "must be an http or https URL"),
        ("unix:/run/worker.sock", "must be an http or https URL"),
        ("http://", "must be an http or https URL"),
        ("http://worker:99999", "must be an http or https URL"),
        ("http://worker:0", "must not have the port 0"),
        (
            "http://user@worker",
            "must not have a user or a password in it",
        ),
        (
            "http://user:pass@worker",
            "must not have a user or a password in it",
        ),
        (
            "http://:pass@worker",
            "must not have a user or a password in it",
        ),
        (
            "http://10.0.0.1@worker",
            "must not have a user or a password in it",
        ),
        (
            "http://worker/#fragment",
            "must not have a query or a fragment",
        ),
        ("http://worker/?", "must not have a query or a fragment"),
        ("http://worker?a=b", "must not have a query or a fragment"),
        (
            " http://worker",
            "must be a URL without spaces and line ends",
        ),
        (
            "http://worker\r\nHost: evil",
            "must be a URL without spaces and line ends",
        ),
        (
            "ht\ttp://worker",
            "must be a URL without spaces and line ends",
        ),
        (
            "http://worker/a b",
            "must be a URL without spaces and line ends",
        ),
        // Zones name an interface of the machine that dials.
        ("http://[fe80::1%25eth0]", "must be an http or https URL"),
        ("http://[fe80::1%eth0]", "must be an http or https URL"),
        ("http://[::1", "must be an http or https URL"),
        ("http://10.0.0.256", "must be an http or https URL"),
        ("http://10.0.0.0.1", "must be an http or https URL"),
        ("http://a..b", "must have a hostname or an address"),
        ("http://.", "must have a hostname or an address"),
        ("http://*", "must have a hostname or an address"),
    ] {
        let error = parse_backend_url(url).map(String::from);
        match error {
            Err(error @ BackendHostError::Malformed(_)) => {
                assert_eq!(
                    error.to_string(),
                    format!("advertiseUrl {reason}"),
                    "{url:?}"
                );
            }
            other => panic!("{url:?}: {other:?}"),
        }
    }
}

// P2.2
#[test]
fn an_address_must_be_in_a_block() {
    let url = "http://10.0.0.1:8000/prefix";
    assert_allowed(url, &["10.0.0.0/8"], &[], &["10.0.0.1:8000"]);
    assert_allowed(url, &["*"], &[], &["10.0.0.1:8000"]);
    assert_allowed("https://10.0.0.1", &["10.0.0.1"], &[], &["10.0.0.1:443"]);
    assert_allowed("http://[fd00::1]", &["fd00::/8"], &[], &["[fd00::1]:80"]);
    let message = "advertiseUrl: 10.0.0.1 is not among the allowedBackendHosts";
    for entries in [&[][..], &["10.1.0.0/16"], &["worker.internal"], &["::/0"]] {
        assert_refused(url, entries, &[], message);
    }
}

// P2.2
#[test]
fn every_address_behind_a_name_must_be_allowed() {
    let (url, ten) = ("http://worker.internal:8000", &["10.0.0.0/8"][..]);
    let both = ["10.0.0.1:8000", "10.0.0.2:8000"];
    assert_allowed(url, ten, &["10.0.0.1", "10.0.0.2", "10.0.0.1"], &both);
    let message =
        "advertiseUrl: 192.0.2.1, behind worker.internal, is not among the allowedBackendHosts";
    assert_refused(url, ten, &["10.0.0.1", "192.0.2.1"], message);
    assert_refused(url, ten, &["192.0.2.1", "10.0.0.1"], message);
    // A name that is allowed itself stands for whatever is behind it.
    for entry in ["worker.internal", "WORKER.internal."] {
        assert_allowed(url, &[entry], &["192.0.2.1"], &["192.0.2.1:8000"]);
        assert_allowed(
            "http://Worker.Internal.:8000",
            &[entry],
            &["192.0.2.1"],
            &["192.0.2.1:8000"],
        );
    }
    let other =
        "advertiseUrl: 192.0.2.1, behind evil.internal, is not among the allowedBackendHosts";
    assert_refused(
        "http://evil.internal",
        &["worker.internal"],
        &["192.0.2.1"],
        other,
    );
    assert_refused(
        url,
        &["*"],
        &[],
        "advertiseUrl: worker.internal cannot be resolved",
    );
    let many: Vec<_> = (0..65).map(|last| format!("10.0.0.{last}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert_refused(
        url,
        &["*"],
        &many,
        "advertiseUrl: worker.internal cannot be resolved",
    );
}

// P2.2
#[test]
fn an_address_is_read_as_whoever_dials_it_reads_it() {
    for url in [
        "http://127.0.0.1",
        "http://0x7f.0.0.1",
        "http://0x7f000001",
        "http://017700000001",
        "http://0177.0.0.1",
        "http://2130706433",
        "http://127.1",
        "http://127.0.0.1.",
        "http://127%2E0.0.1",
        "http://①27.0.0.1",
        "http://[::ffff:127.0.0.1]",
        "http://[::ffff:7f00:1]",
    ] {
        assert_allowed(url, &["127.0.0.0/8"], &[], &["127.0.0.1:80"]);
        let message = "advertiseUrl: 127.0.0.1 is not among the allowedBackendHosts";
        match check(url, &["10.0.0.0/8"], &[]) {
            Err(error) if url.contains("ffff") => {
                assert!(error.to_string().starts_with("advertiseUrl: "), "{error}");
            }
            Err(error) => assert_eq!(error.to_string(), message, "{url}"),
            Ok(addresses) => panic!("{url} is allowed: {addresses:?}"),
        }
    }
    // What the URL says is what counts, whatever a resolver may say of it.
    assert_allowed(
        "http://10.0.0.1",
        &["10.0.0.0/8"],
        &["192.0.2.1"],
        &["10.0.0.1:80"],
    );
}

// P2.2: what points inside
#[test]
fn addresses_of_no_worker_need_an_entry_about_them() {
    let everything = ["*", "0.0.0.0/0", "::/0", "metadata.internal"];
    for (address, kind, entry) in [
        ("169.254.169.254", "link-local", "169.254.169.254"),
        ("169.254.0.1", "link-local", "169.254.0.0/16"),
        ("::ffff:169.254.169.254", "link-local", "169.254.0.0/16"),
        ("fe80::1", "link-local", "fe80::/10"),
        ("fd00:ec2::254", "of a cloud's metadata", "fd00:ec2::254"),
        (
            "100.100.100.200",
            "of a cloud's metadata",
            "100.100.100.200",
        ),
        ("0.0.0.0", "of no host", "0.0.0.0"),
        ("0.1.2.3", "of no host", "0.0.0.0/8"),
        ("::", "of no host or IPv4-compatible", "::"),
        ("::127.0.0.1", "of no host or IPv4-compatible", "::/96"),
        ("224.0.0.1", "multicast", "224.0.0.0/24"),
        ("ff02::1", "multicast", "ff00::/8"),
        ("255.255.255.255", "reserved", "255.255.255.255"),
        ("240.0.0.1", "reserved", "240.0.0.0/4"),
        ("64:ff9b::a9fe:a9fe", "behind NAT64", "64:ff9b::/96"),
        ("2002:a9fe:a9fe::1", "behind 6to4", "2002:a9fe:a9fe::/48"),
    ] {
        let canonical = addresses(&[address])[0].to_canonical();
        let message = format!(
            "advertiseUrl: {canonical}, behind metadata.internal, is {kind}, and no allowedBackendHosts entry is about such addresses"
        );
        let url = "http://metadata.internal";
        assert_refused(url, &everything, &[address], &message);
        assert_refused(url, &everything, &["10.0.0.1", address], &message);
        let dialled = SocketAddr::new(canonical, 80).to_string();
        assert_allowed(url, &[entry], &[address], &[&dialled]);
    }
    for address in [
        "127.0.0.1",
        "::1",
        "64:ff9b::a00:1",
        "2002:a00:1::1",
        "10.0.0.1",
        "fd00::1",
    ] {
        assert!(
            check("http://worker", &["*"], &[address]).is_ok(),
            "{address}"
        );
    }
}

// P2.2
#[tokio::test]
async fn only_names_that_could_be_allowed_are_looked_up() {
    let names = Names(addresses(&["10.0.0.1"]), AtomicUsize::default());
    let ask = async |url: &str, entries: &[&str]| {
        let url = parse_backend_url(url).expect("a URL");
        allowed_addresses(&url, &grants(entries), &names, &Domain::real()).await
    };
    for (url, entries) in [
        ("http://worker", &[][..]),
        ("http://worker", &["other"]),
        ("http://10.0.0.2", &["10.0.0.1"]),
    ] {
        let refused = ask(url, entries).await;
        assert!(matches!(refused, Err(BackendHostError::NotAllowed { .. })));
    }
    assert!(ask("http://10.0.0.1", &["10.0.0.1"]).await.is_ok());
    assert_eq!(names.1.load(Ordering::Relaxed), 0);
    for entries in [&["worker"][..], &["*"], &["10.0.0.0/8"]] {
        assert!(ask("http://worker", entries).await.is_ok());
    }
    assert_eq!(names.1.load(Ordering::Relaxed), 3);
}

struct Never;

impl Resolve for Never {
    fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        future::pending().boxed()
    }
}

// P2.2
#[test]
fn a_name_that_takes_too_long_is_given_up() {
    Sim::run(1, |sim| async move {
        let url = parse_backend_url("http://worker").expect("a URL");
        let resolved = allowed_addresses(&url, &grants(&["*"]), &Never, &sim.domain()).await;
        match resolved {
            Err(BackendHostError::Unresolvable { host, source }) => {
                assert_eq!(
                    (host.as_str(), source.kind()),
                    ("worker", io::ErrorKind::TimedOut)
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(sim.elapsed(), Duration::from_secs(5));
    });
}

// P2.2
#[tokio::test]
async fn localhost_is_a_name_like_any_other() {
    let ask = async |entries: &[&str]| {
        let url = parse_backend_url("http://localhost:8000").expect("a URL");
        allowed_addresses(
            &url,
            &grants(entries),
            &pinboard::sessions::SystemResolver::new(),
            &Domain::real(),
        )
        .await
    };
    for entries in [&["localhost"][..], &["127.0.0.0/8", "::1"], &["*"]] {
        let addresses = ask(entries).await.expect("loopback");
        assert!(
            addresses
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 8000)
        );
    }
    assert!(matches!(
        ask(&["10.0.0.0/8"]).await,
        Err(BackendHostError::NotAllowed {
            address: Some(_),
            ..
        })
    ));
}

proptest! {
    #[test]
    fn whatever_is_dialled_is_allowed(
        resolved in prop::collection::vec(any::<IpAddr>(), 0..4),
        blocks in prop::collection::vec((any::<std::net::Ipv4Addr>(), 0_u8..=32), 0..4),
        any in proptest::bool::weighted(0.2),
    ) {
        let mut rules: Vec<_> = blocks
            .into_iter()
            .map(|(address, prefix)| {
                let block = ipnet::Ipv4Net::new(address, prefix).expect("a prefix that fits");
                BackendHostRule::Block(block.trunc().into())
            })
            .collect();
        if any {
            rules.push(BackendHostRule::Any);
        }
        let grants = Grants { backend_hosts: rules, ..Grants::default() };
        let url = parse_backend_url("http://worker:8000").expect("a URL");
        if let Ok(dialled) = check_addresses(&url, &grants, &resolved) {
            prop_assert!(!dialled.is_empty());
            for address in dialled {
                prop_assert!(grants.allows_address("worker", address.ip()));
                prop_assert!(resolved.iter().any(|known| known.to_canonical() == address.ip()));
                prop_assert_eq!(address.port(), 8000);
            }
        }
    }

    #[test]
    fn any_text_is_a_url_or_an_error(text in ".{0,40}", scheme in "(https?://)?") {
        if let Ok(url) = parse_backend_url(&format!("{scheme}{text}")) {
            prop_assert!(matches!(url.scheme(), "http" | "https"));
            prop_assert!(url.username().is_empty() && url.query().is_none() && url.fragment().is_none());
            prop_assert!(url.has_host());
            let _ = check_addresses(&url, &Grants::all(), &[[10, 0, 0, 1].into()]);
        }
    }
}
