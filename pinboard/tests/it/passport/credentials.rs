//! Where a token may stand in a request.

use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue};
use pinboard::passport::{BEARER_PROTOCOL, Passport, remaining_protocols};
use proptest::prelude::*;
use serde_json::json;

use super::support::headers;

fn passport() -> Passport {
    Passport::dev("t0ken").expect("a token")
}

async fn is_known(lines: &[&str]) -> bool {
    let lines: Vec<_> = lines.iter().map(|line| (AUTHORIZATION, *line)).collect();
    passport().authenticate(&headers(&lines)).await.is_some()
}

fn offers(lines: &[&str]) -> HeaderMap {
    let lines: Vec<_> = lines
        .iter()
        .map(|line| (SEC_WEBSOCKET_PROTOCOL, *line))
        .collect();
    headers(&lines)
}

// P2, P7.4
#[tokio::test]
async fn the_scheme_is_read_in_any_case() {
    for line in [
        "Bearer t0ken",
        "bearer t0ken",
        "BEARER t0ken",
        "bEaReR    t0ken",
    ] {
        assert!(is_known(&[line]).await, "{line}");
    }
}

// P2, P7.4
#[tokio::test]
async fn a_malformed_header_is_nobodys() {
    for line in [
        "t0ken",
        "Bearer",
        "Bearer ",
        "Bearert0ken",
        "Bearer:t0ken",
        "Bearer t0ken t0ken",
        "Bearer t0ken, Bearer t0ken",
        "Bearer \"t0ken\"",
        "Bearer\tt0ken",
        "Token t0ken",
        "Basic t0ken",
        "Bearer tøken",
        "",
    ] {
        assert!(!is_known(&[line]).await, "{line:?}");
    }
    let long = format!("Bearer {}", "t".repeat(17_000));
    assert!(!is_known(&[&long]).await);
}

// P2, P7.4
#[tokio::test]
async fn several_headers_are_nobodys() {
    assert!(!is_known(&["Bearer t0ken", "Bearer t0ken"]).await);
    assert!(!is_known(&["Bearer t0ken", "Basic dXNlcjpwYXNz"]).await);
    assert!(!is_known(&["Basic dXNlcjpwYXNz", "Bearer t0ken"]).await);
}

// P7.4
#[test]
fn a_websocket_may_bring_its_token_as_a_subprotocol() {
    let passport = passport();
    for lines in [
        &["pinboard.bearer.t0ken"][..],
        &["chat, pinboard.bearer.t0ken"],
        &["pinboard.bearer.t0ken,chat"],
        &["chat", " pinboard.bearer.t0ken ", "json"],
    ] {
        let headers = offers(lines);
        let admitted = passport.admit("/threads", &headers, true).now();
        let admitted = admitted.expect("ready").expect("admitted");
        assert!(admitted.account.is_some(), "{lines:?}");
        assert!(admitted.strip_bearer_subprotocol && !admitted.strip_authorization);
    }
}

// P7.4
#[test]
fn only_an_upgrade_has_subprotocols() {
    let (passport, headers) = (passport(), offers(&["pinboard.bearer.t0ken"]));
    let admitted = passport.admit("/threads", &headers, false).now();
    let admitted = admitted.expect("ready").expect("admitted");
    assert_eq!(admitted, Default::default());
}

// P7.4
#[test]
fn a_subprotocol_that_is_not_one_token_is_nobodys_and_removed_all_the_same() {
    let passport = passport();
    for lines in [
        &["pinboard.bearer."][..],
        &["pinboard.bearer.wrong"],
        &["pinboard.bearer.t0 ken"],
        &["pinboard.bearer.t0ken, pinboard.bearer.t0ken"],
        &["pinboard.bearer.t0ken", "pinboard.bearer.other"],
    ] {
        let headers = offers(lines);
        let admitted = passport.admit("/threads", &headers, true).now();
        let admitted = admitted.expect("ready").expect("anyone is admitted");
        assert!(admitted.account.is_none(), "{lines:?}");
        assert!(admitted.strip_bearer_subprotocol, "{lines:?}");
        assert_eq!(remaining_protocols(&headers), None, "{lines:?}");
    }
}

// P7.4, P7.5
#[test]
fn with_two_tokens_the_header_comes_first_and_a_malformed_one_spoils_both() {
    let passport = passport();
    let admit = |authorization: &str, protocol: &str| {
        let headers = headers(&[
            (AUTHORIZATION, authorization),
            (SEC_WEBSOCKET_PROTOCOL, protocol),
        ]);
        let answer = passport.admit("/threads", &headers, true).now();
        let admitted = answer.expect("ready").expect("anyone is admitted");
        assert!(admitted.strip_bearer_subprotocol);
        (admitted.account.is_some(), admitted.strip_authorization)
    };
    assert_eq!(admit("Bearer t0ken", "pinboard.bearer.t0ken"), (true, true));
    assert_eq!(admit("Bearer t0ken", "pinboard.bearer.other"), (true, true));
    // The app's own: the header was not what was resolved.
    assert_eq!(
        admit("Basic dXNlcjpwYXNz", "pinboard.bearer.t0ken"),
        (true, false)
    );
    assert_eq!(
        admit("Bearer other", "pinboard.bearer.t0ken"),
        (true, false)
    );
    assert_eq!(admit("Bearer", "pinboard.bearer.t0ken"), (false, false));
    assert_eq!(admit("Bearer t0ken", "pinboard.bearer."), (false, false));
}

// P7.5: only where anyone is admitted may the app have a scheme of its own
#[test]
fn where_not_anyone_is_admitted_no_header_is_passed_on() {
    let json = json!({
        "providers": [{"type": "staticToken", "id": "p", "keys": [{"name": "a", "token": "t0ken"}]}],
        "namespaces": {"/closed": {"allow": "authenticated"}}});
    let passport = super::support::passport(&json).expect("a passport");
    let headers = headers(&[
        (AUTHORIZATION, "Basic dXNlcjpwYXNz"),
        (SEC_WEBSOCKET_PROTOCOL, "pinboard.bearer.t0ken"),
    ]);
    let strips = |ns: &str| {
        let answer = passport.admit(ns, &headers, true).now();
        let admitted = answer.expect("ready").expect("by its subprotocol");
        assert!(admitted.account.is_some());
        admitted.strip_authorization
    };
    assert!(strips("/closed") && !strips("/open"));
}

// P7.4
#[test]
fn what_is_left_of_the_subprotocols_keeps_its_order() {
    for (lines, expected) in [
        (&["chat"][..], Some("chat")),
        (&["pinboard.bearer.t, chat, json"], Some("chat, json")),
        (&["chat", "json,pinboard.bearer.t"], Some("chat, json")),
        (
            &["chat;q=1, ,, Pinboard.Bearer.x"],
            Some("chat;q=1, Pinboard.Bearer.x"),
        ),
        (&["pinboard.bearer"], Some("pinboard.bearer")),
        (&["pinboard.bearer.t"], None),
        (&["", ","], None),
        (&[], None),
    ] {
        let expected = expected.map(HeaderValue::from_static);
        assert_eq!(remaining_protocols(&offers(lines)), expected, "{lines:?}");
    }
}

proptest! {
    #[test]
    fn no_token_is_left_among_the_subprotocols(
        lines in prop::collection::vec("([ ,\t]|pinboard\\.bearer\\.|[!-~]){0,12}", 0..4),
    ) {
        let lines: Vec<_> = lines.iter().map(|line| line.trim()).collect();
        let headers = offers(&lines);
        let others: Vec<_> = lines
            .iter()
            .flat_map(|line| line.split(','))
            .map(str::trim)
            .filter(|entry| !entry.is_empty() && !entry.starts_with(BEARER_PROTOCOL))
            .collect();
        let left = remaining_protocols(&headers);
        let left: Vec<_> = left
            .iter()
            .flat_map(|value| value.to_str().expect("ASCII").split(", "))
            .collect();
        prop_assert_eq!(left, others);
    }

    #[test]
    fn every_token_that_can_be_sent_is_known_again(token in "[!-~]{1,64}", other in "[!-~]{0,64}") {
        let passport = Passport::dev(&token).expect("it can be sent");
        let admitted = |line: String| {
            let headers = headers(&[(AUTHORIZATION, &line)]);
            let answer = passport.admit("/threads", &headers, false).now();
            answer.expect("ready").expect("anyone is admitted")
        };
        let own = admitted(format!("Bearer {token}"));
        prop_assert!(own.account.is_some() && own.strip_authorization);
        let others = admitted(format!("Bearer {other}"));
        prop_assert_eq!(others.account.is_some(), token == other);
    }

    #[test]
    fn any_header_is_somebodys_or_nobodys(line in prop::collection::vec(any::<u8>(), 0..64)) {
        let Ok(value) = HeaderValue::from_bytes(&line) else {
            return Ok(());
        };
        let passport = passport();
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.clone());
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value);
        let answer = passport.admit("/threads", &headers, true).now();
        let admitted = answer.expect("ready").expect("anyone is admitted");
        prop_assert!(admitted.account.is_none());
    }
}
