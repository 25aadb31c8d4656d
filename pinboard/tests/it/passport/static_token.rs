//! The provider `staticToken`, and the key of a dev node.

use http::header::AUTHORIZATION;
use pinboard::passport::{Grants, InvalidToken, OPERATOR_SCOPE, Passport, WORKER_SCOPE};
use serde_json::json;

use super::support::{headers, name, passport, who};

fn two_keys() -> Passport {
    let json = json!({"providers": [
        {"type": "staticToken", "id": "p", "keys": [
            {"name": "a", "token": ["t0ken-a1", "t0ken-a2", "t0ken-a2"], "scopes": ["read"]},
            {"name": "b", "token": "t0ken-b"}]},
        {"type": "staticToken", "id": "q", "keys": [
            {"name": "a", "token": "t0ken-other-a", "claims": {"team": ["blue"]}}]}]});
    passport(&json).expect("a passport")
}

// P7.2
#[tokio::test]
async fn each_token_of_a_key_is_its_own() {
    let passport = two_keys();
    for (token, expected) in [
        ("t0ken-a1", Some("a")),
        ("t0ken-a2", Some("a")),
        ("t0ken-b", Some("b")),
        ("t0ken-other-a", Some("a")),
        ("t0ken-a", None),
        ("t0ken-a11", None),
        ("T0KEN-B", None),
        ("", None),
    ] {
        assert_eq!(name(&passport, token).await.as_deref(), expected, "{token}");
    }
}

// P7.2
#[tokio::test]
async fn a_key_has_its_scopes_and_claims_and_grants_nothing_by_itself() {
    let passport = two_keys();
    let a = who(&passport, "t0ken-a1").await.expect("a");
    assert!(a.has("read") && !a.has("write"));
    assert_eq!(*a.grants, Grants::default());
    let other = who(&passport, "t0ken-other-a").await.expect("the other a");
    assert!(!other.has("read"));
    assert_eq!(other.account.claims["team"], json!(["blue"]));
}

#[tokio::test]
async fn clones_are_the_same_passport() {
    let passport = two_keys().clone();
    assert_eq!(name(&passport, "t0ken-b").await.as_deref(), Some("b"));
}

// P1.4
#[tokio::test]
async fn the_key_of_a_dev_node_may_do_everything() {
    let passport = Passport::dev("t0ken").expect("a token");
    let key = who(&passport, "t0ken").await.expect("the dev key");
    assert!(key.has(WORKER_SCOPE) && key.has(OPERATOR_SCOPE));
    assert!(key.grants.is_unrestricted() && key.grants.is_unrestricted_in_every_hostname());
    assert!(key.grants.covers_namespace("/threads"));
    assert!(key.grants.covers_hostname("pr-42.example.com") && key.grants.covers_env("staging"));
    assert!(
        key.grants
            .allows_address("localhost", [127, 0, 0, 1].into())
    );
    assert_eq!(
        key.account.claims["pinboard"],
        json!({"namespaces": ["*"], "allowedBackendHosts": ["*"], "hostnames": ["*"], "envs": ["*"]})
    );
    assert_eq!(name(&passport, "t0ken2").await, None);
    let shown = format!("{passport:?}");
    assert!(!shown.contains("t0ken"), "{shown}");
}

// P1.4
#[test]
fn a_dev_token_that_could_not_be_sent_is_refused() {
    for (token, error) in [
        ("", InvalidToken::Empty),
        ("two words", InvalidToken::Characters),
        ("t0ken\n", InvalidToken::Characters),
        ("tøken", InvalidToken::Characters),
        (&"x".repeat(20_000), InvalidToken::TooLong),
    ] {
        assert_eq!(Passport::dev(token).err(), Some(error), "{token:?}");
    }
}

// P2: 401 without one
#[tokio::test]
async fn without_a_passport_nobody_is_known() {
    let passport = Passport::default();
    assert_eq!(name(&passport, "anything").await, None);
    let none = headers(&[]);
    assert!(passport.authenticate(&none).await.is_none());
    let basic = headers(&[(AUTHORIZATION, "Basic dXNlcjpwYXNz")]);
    assert!(passport.authenticate(&basic).await.is_none());
}
