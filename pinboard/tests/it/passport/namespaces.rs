//! Whom a namespace admits, and what goes on to the worker.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use pinboard::passport::{Admitted, Denied, Passport};
use serde_json::json;

use super::support::{admit, bearer, headers, passport};

fn guarded() -> Passport {
    let json = json!({
        "providers": [{"type": "staticToken", "id": "p", "keys": [
            {"name": "reader", "token": "t0ken-r", "scopes": ["read"]},
            {"name": "writer", "token": "t0ken-w", "scopes": ["read", "threads:write"]}]}],
        "namespaces": {
            "/open": {"allow": "anyone"},
            "/closed": {"allow": "authenticated"},
            "/narrow": {"allow": "scope:threads:write"}}});
    passport(&json).expect("a passport")
}

fn name(admitted: Result<Admitted, Denied>) -> Result<Option<String>, Denied> {
    admitted.map(|admitted| admitted.account.map(|account| account.sub.clone()))
}

// P7.4
#[test]
fn each_rule_admits_whom_it_says() {
    let passport = guarded();
    let anonymous = HeaderMap::new();
    let (reader, writer, stranger) = (bearer("t0ken-r"), bearer("t0ken-w"), bearer("wrong"));
    let sub = |name: &str| Ok(Some(name.to_owned()));
    let unknown = Err(Denied::Unauthenticated);
    for (ns, expected) in [
        // The default.
        ("/other", [Ok(None), Ok(None), sub("reader"), sub("writer")]),
        ("/open", [Ok(None), Ok(None), sub("reader"), sub("writer")]),
        (
            "/closed",
            [
                unknown.clone(),
                unknown.clone(),
                sub("reader"),
                sub("writer"),
            ],
        ),
        (
            "/narrow",
            [
                unknown.clone(),
                unknown.clone(),
                Err(Denied::Forbidden),
                sub("writer"),
            ],
        ),
    ] {
        let given = [&anonymous, &stranger, &reader, &writer]
            .map(|headers| name(admit(&passport, ns, headers)));
        assert_eq!(given, expected, "{ns}");
    }
}

// P7.4: namespaces are compared as they are
#[test]
fn a_rule_is_for_one_namespace() {
    let passport = guarded();
    for ns in ["/Closed", "/closed/", "closed", "/closed%20", ""] {
        assert!(admit(&passport, ns, &HeaderMap::new()).is_ok(), "{ns}");
    }
}

// P7.5
#[test]
fn a_header_that_was_resolved_is_not_passed_on() {
    let passport = guarded();
    for ns in ["/other", "/open", "/closed"] {
        let admitted = admit(&passport, ns, &bearer("t0ken-r")).expect("admitted");
        assert!(admitted.strip_authorization, "{ns}");
    }
}

// P7.5
#[test]
fn a_header_that_nobody_knows_is_passed_on_where_anyone_is_admitted() {
    let passport = guarded();
    let unknown = [
        bearer("wrong"),
        headers(&[(AUTHORIZATION, "Basic dXNlcjpwYXNz")]),
        headers(&[
            (AUTHORIZATION, "Bearer t0ken-r"),
            (AUTHORIZATION, "Bearer t0ken-r"),
        ]),
        headers(&[(AUTHORIZATION, "Bearer")]),
    ];
    for headers in &unknown {
        for ns in ["/other", "/open"] {
            assert_eq!(admit(&passport, ns, headers), Ok(Admitted::default()));
        }
        assert_eq!(
            admit(&passport, "/closed", headers),
            Err(Denied::Unauthenticated)
        );
    }
}

// P7.4: requests of one key share the account, so that what is made from it can be shared too
#[test]
fn requests_of_one_key_share_its_account() {
    let passport = guarded();
    let account = || {
        let admitted = admit(&passport, "/open", &bearer("t0ken-r"));
        admitted.expect("admitted").account.expect("known")
    };
    assert!(std::sync::Arc::ptr_eq(&account(), &account()));
}

/// Awaiting an answer that is there takes one poll.
#[test]
fn an_answer_that_waits_for_nothing_is_ready_at_once() {
    use futures_util::FutureExt as _;
    let (passport, headers) = (guarded(), bearer("t0ken-r"));
    let answer = passport.admit("/closed", &headers, false);
    assert!(answer.now_or_never().expect("ready").is_ok());
}
