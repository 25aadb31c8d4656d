//! `PINBOARD_PASSPORT`, and what is said when it is wrong.

use proptest::prelude::*;
use serde_json::{Value, json};

use pinboard::passport::Passport;
use pinned_domain::Domain;

use super::issuer::{
    ec, ed, key_set, other_ec, other_rsa, provider, rsa, small_rsa, with, without,
};
use super::support::{bearer, name, no_fetcher, passport, passport_with_env};

fn error(json: &Value) -> String {
    passport(json).expect_err("malformed").to_string()
}

fn error_in_text(json: &str) -> String {
    let error = Passport::parse(json, |_| None, &Domain::real(), &no_fetcher());
    error.expect_err("malformed").to_string()
}

fn with_key(key: Value) -> Value {
    json!({"providers": [{"type": "staticToken", "id": "pinboard", "keys": [key]}]})
}

fn with_claims(pinboard: Value) -> Value {
    with_key(json!({"name": "a", "token": "t0ken", "claims": {"pinboard": pinboard}}))
}

fn with_jwks(jwks: Value) -> Value {
    json!({"providers": [provider(jwks)]})
}

/// Asserts what is said, place and expectation, of each document.
#[track_caller]
fn assert_errors<const N: usize>(cases: [(Value, &str); N]) {
    for (json, expected) in cases {
        assert_eq!(
            error(&json),
            format!("PINBOARD_PASSPORT is invalid: {expected}"),
            "{json}"
        );
    }
}

// P7.1, P7.2
#[tokio::test]
async fn the_passport_of_the_operations_guide_is_read() {
    let json = json!({
      "providers": [{ "type": "staticToken", "id": "pinboard", "keys": [
        { "name": "previews", "token": [{ "env": "PINBOARD_TOKEN" }, { "env": "PINBOARD_TOKEN_NEXT" }],
          "scopes": ["pinboard:worker"],
          "claims": { "pinboard": { "namespaces": ["/threads"], "allowedBackendHosts": ["10.0.0.0/8"],
            "hostnames": [".preview.example.com"], "envs": ["*"] } } },
        { "name": "ops", "token": { "env": "PINBOARD_OPERATOR_TOKEN" }, "scopes": ["pinboard:operator"],
          "claims": { "pinboard": { "namespaces": ["*"], "hostnames": ["*"], "envs": ["*"] } } }
      ]}],
      "namespaces": { "/threads": { "allow": "authenticated" } }
    });
    let passport = passport_with_env(&json, |name| Some(format!("value-of-{name}")));
    let passport = passport.expect("the guide's own example");

    let previews = passport
        .authenticate(&bearer("value-of-PINBOARD_TOKEN_NEXT"))
        .await
        .expect("a rotated token");
    assert_eq!(previews.account.sub, "previews");
    assert!(previews.has("pinboard:worker") && !previews.has("pinboard:operator"));
    assert!(previews.grants.covers_hostname("pr-42.preview.example.com"));
    assert!(!previews.grants.is_unrestricted());
    assert_eq!(
        previews.account.claims["pinboard"]["namespaces"],
        json!(["/threads"])
    );
    let ops = passport
        .authenticate(&bearer("value-of-PINBOARD_OPERATOR_TOKEN"))
        .await
        .expect("the operator's token");
    assert!(ops.grants.is_unrestricted_in_every_hostname());
    assert_eq!(ops.grants.backend_hosts, []);
}

// P7.2
#[test]
fn a_variable_that_is_not_set_ends_the_start() {
    let token = |token: Value| with_key(json!({"name": "a", "token": token}));
    assert_errors([
        (
            token(json!({"env": "PINBOARD_TOKEN"})),
            "providers[0].keys[0].token.env: the variable PINBOARD_TOKEN is not set",
        ),
        (
            token(json!(["t0ken", {"env": "NEXT"}])),
            "providers[0].keys[0].token[1].env: the variable NEXT is not set",
        ),
        (
            token(json!({"env": "7up"})),
            "providers[0].keys[0].token.env: expected the name of an environment variable",
        ),
        (
            token(json!({"env": "s3cret/t0ken="})),
            "providers[0].keys[0].token.env: expected the name of an environment variable",
        ),
        (
            token(json!({"env": "A", "default": "b"})),
            "providers[0].keys[0].token.default: unknown field; known are env",
        ),
    ]);
    for (value, reason) in [
        ("", "a token must not be empty"),
        (
            "t0ken\n",
            "a token must be visible ASCII characters, without spaces or line ends",
        ),
    ] {
        let error = passport_with_env(&token(json!({"env": "A"})), |_| Some(value.to_owned()));
        assert_eq!(
            error.expect_err("no token").to_string(),
            format!(
                "PINBOARD_PASSPORT is invalid: providers[0].keys[0].token.env: the variable A holds no token: {reason}"
            )
        );
    }
}

// P1.3, P7.1
#[test]
fn what_is_missing_unknown_or_of_the_wrong_type_is_told_with_its_place() {
    assert_errors([
        (json!([]), "expected an object, found an array"),
        (json!({}), "providers: required, and missing"),
        (
            json!({"providers": {}}),
            "providers: expected an array, found an object",
        ),
        (
            json!({"providers": [], "namespace": {}}),
            "namespace: unknown field; known are providers, namespaces",
        ),
        (
            json!({"providers": [], "name space": {}}),
            r#"["name space"]: unknown field; known are providers, namespaces"#,
        ),
        (
            json!({"providers": [null]}),
            "providers[0]: expected an object, found null",
        ),
        (
            json!({"providers": [{"id": "a"}]}),
            "providers[0].type: required, and missing",
        ),
        (
            json!({"providers": [{"type": "oidc"}]}),
            r#"providers[0].type: expected "staticToken" or "jwt""#,
        ),
        (
            json!({"providers": [{"type": "staticToken", "keys": []}]}),
            "providers[0].id: required, and missing",
        ),
        (
            json!({"providers": [{"type": "staticToken", "id": "a", "tokens": []}]}),
            "providers[0].tokens: unknown field; known are type, id, keys",
        ),
        (
            json!({"providers": [{"type": "staticToken", "id": "", "keys": []}]}),
            "providers[0].id: expected a string that is not empty",
        ),
        (
            json!({"providers": [
                {"type": "staticToken", "id": "a", "keys": []},
                {"type": "staticToken", "id": "a", "keys": []}]}),
            r#"providers[1].id: another one is called "a" too"#,
        ),
        (
            with_key(json!({"name": "a"})),
            "providers[0].keys[0].token: required, and missing",
        ),
        (
            with_key(json!({"name": 7, "token": "t"})),
            "providers[0].keys[0].name: expected a string, found a number",
        ),
        (
            with_key(json!({"name": "a", "token": "t", "scope": []})),
            "providers[0].keys[0].scope: unknown field; known are name, token, scopes, claims",
        ),
        (
            with_key(json!({"name": "a", "token": "t", "scopes": "pinboard:worker"})),
            "providers[0].keys[0].scopes: expected an array, found a string",
        ),
        (
            with_key(json!({"name": "a", "token": "t", "scopes": ["a b"]})),
            "providers[0].keys[0].scopes[0]: expected one scope, without spaces",
        ),
        (
            with_key(json!({"name": "a", "token": "t", "claims": []})),
            "providers[0].keys[0].claims: expected an object, found an array",
        ),
    ]);
}

// P7.2
#[test]
fn a_token_must_be_one_and_belong_to_one_key() {
    let token = |token: Value| with_key(json!({"name": "a", "token": token}));
    assert_errors([
        (
            token(json!("")),
            "providers[0].keys[0].token: a token must not be empty",
        ),
        (
            token(json!("two words")),
            "providers[0].keys[0].token: a token must be visible ASCII characters, without spaces or line ends",
        ),
        (
            token(json!("x".repeat(16 * 1024 + 1))),
            "providers[0].keys[0].token: a token must have at most 16384 characters",
        ),
        (
            token(json!([])),
            "providers[0].keys[0].token: expected at least one token",
        ),
        (
            token(json!(7)),
            r#"providers[0].keys[0].token: expected a token, {"env": NAME}, or an array of these"#,
        ),
        (
            token(json!([["t"]])),
            r#"providers[0].keys[0].token[0]: expected a token, {"env": NAME}, or an array of these"#,
        ),
        (
            json!({"providers": [{"type": "staticToken", "id": "p", "keys": [
                {"name": "a", "token": "t"}, {"name": "a", "token": "u"}]}]}),
            r#"providers[0].keys[1].name: another one is called "a" too"#,
        ),
        (
            json!({"providers": [
                {"type": "staticToken", "id": "p", "keys": [{"name": "a", "token": ["t", "u"]}]},
                {"type": "staticToken", "id": "q", "keys": [{"name": "b", "token": "u"}]}]}),
            r#"providers[1].keys[0].token: the same token as that of the key "a""#,
        ),
    ]);
}

// P2.2
#[test]
fn claims_of_a_key_must_be_what_pinboard_knows() {
    assert_errors([
        (
            with_claims(json!(["*"])),
            "providers[0].keys[0].claims.pinboard: expected an object, found an array",
        ),
        (
            with_claims(json!({"namespaces": "*"})),
            "providers[0].keys[0].claims.pinboard.namespaces: expected an array, found a string",
        ),
        (
            with_claims(json!({"allowedBackendHost": ["*"]})),
            "providers[0].keys[0].claims.pinboard.allowedBackendHost: unknown field; known are namespaces, allowedBackendHosts, hostnames, envs",
        ),
        (
            with_claims(json!({"namespaces": ["/a", "threads"]})),
            "providers[0].keys[0].claims.pinboard.namespaces[1]: expected `*` or a namespace: namespace must be '/' followed by a single path segment",
        ),
        (
            with_claims(json!({"allowedBackendHosts": ["10.1.2.3/8"]})),
            "providers[0].keys[0].claims.pinboard.allowedBackendHosts[0]: expected `*`, a hostname, an address, or a block of addresses such as 10.0.0.0/8; did you mean 10.0.0.0/8?",
        ),
        (
            with_claims(json!({"hostnames": ["*.example.com"]})),
            "providers[0].keys[0].claims.pinboard.hostnames[0]: expected `*`, a hostname, or `.` and the end of one",
        ),
        (
            with_claims(json!({"envs": [null]})),
            "providers[0].keys[0].claims.pinboard.envs[0]: expected a string, found null",
        ),
    ]);
}

// P7.4
#[test]
fn rules_of_namespaces_are_checked() {
    let namespaces = |rules: Value| json!({"providers": [], "namespaces": rules});
    let allow = |allow: Value| namespaces(json!({"/threads": {"allow": allow}}));
    let expected =
        r#"namespaces["/threads"].allow: expected "authenticated", "anyone" or "scope:NAME""#;
    assert_errors([
        (
            namespaces(json!([])),
            "namespaces: expected an object, found an array",
        ),
        (
            namespaces(json!({"threads": {"allow": "anyone"}})),
            "namespaces.threads: namespace must be '/' followed by a single path segment",
        ),
        (
            namespaces(json!({"/threads": {}})),
            r#"namespaces["/threads"].allow: required, and missing"#,
        ),
        (
            namespaces(json!({"/threads": {"allow": "anyone", "deny": 1}})),
            r#"namespaces["/threads"].deny: unknown field; known are allow"#,
        ),
        (allow(json!("everyone")), expected),
        (allow(json!("scope:")), expected),
        (allow(json!("scope:a b")), expected),
        (
            allow(json!(true)),
            r#"namespaces["/threads"].allow: expected a string, found a boolean"#,
        ),
    ]);
}

/// Which of two rules counts would depend on the reader.
#[test]
fn a_name_that_is_there_twice_is_refused() {
    let twice = r#"{"providers": [], "namespaces": {
        "/a": {"allow": "authenticated"}, "/a": {"allow": "anyone"}}}"#;
    let error = error_in_text(twice);
    assert!(
        error.contains("expected JSON: two members \"/a\" at line 2"),
        "{error}"
    );
}

#[test]
fn text_that_is_no_json_is_told_by_line_and_column_alone() {
    for json in [
        "",
        "{",
        "s3cret",
        r#"{"providers": [s3cret]}"#,
        "{}{}",
        "\u{feff}{}",
    ] {
        let error = error_in_text(json);
        assert!(
            error.starts_with("PINBOARD_PASSPORT is invalid: expected JSON: "),
            "{error}"
        );
        assert!(
            error.contains("line") && !error.contains("s3cret"),
            "{error}"
        );
    }
    let deep = "[".repeat(100_000);
    assert!(error_in_text(&deep).contains("recursion limit"));
}

// P7.3
#[test]
fn an_issuer_needs_a_name_an_audience_and_keys() {
    let good = provider(key_set(&[ec()]));
    passport(&json!({"providers": [good.clone()]})).expect("all it needs");
    let changed = |name: &str, value: Value| json!({"providers": [with(&good, name, value)]});
    let lacking = |name: &str| json!({"providers": [without(&good, name)]});
    assert_errors([
        (
            lacking("issuer"),
            "providers[0].issuer: required, and missing",
        ),
        (
            lacking("audience"),
            "providers[0].audience: required, and missing",
        ),
        (lacking("jwks"), "providers[0].jwks: required, and missing"),
        (
            changed("issuer", json!("")),
            "providers[0].issuer: expected a string that is not empty",
        ),
        (
            changed("audience", json!([])),
            "providers[0].audience: expected a string, or an array of at least one",
        ),
        (
            changed("audience", json!(["a", 7])),
            "providers[0].audience[1]: expected a string, found a number",
        ),
        (
            changed("scopesClaim", json!(["a"])),
            "providers[0].scopesClaim: expected a string, found an array",
        ),
        (
            changed("algorithms", json!(["HS256"])),
            "providers[0].algorithms: unknown field; known are type, id, issuer, audience, jwks, scopesClaim, claimsClaim",
        ),
    ]);
}

// P7.3
#[test]
fn keys_of_an_issuer_must_be_of_use() {
    let key =
        |name: &str, value: Value| with_jwks(json!({"keys": [with(&ec().jwk(), name, value)]}));
    let one = |key: Value| with_jwks(json!({"keys": [key]}));
    let zeros = "A".repeat(43);
    assert_errors([
        (
            with_jwks(json!({})),
            r#"providers[0].jwks: expected either a key set ({"keys": [..]}) or {"url": ".."}"#,
        ),
        (
            with_jwks(json!({"keys": [], "url": "https://issuer.example/keys"})),
            r#"providers[0].jwks: expected either a key set ({"keys": [..]}) or {"url": ".."}"#,
        ),
        (
            with_jwks(json!({"uri": "https://issuer.example/keys"})),
            "providers[0].jwks.uri: unknown field; known are keys, url, inline",
        ),
        (
            with_jwks(json!({"url": "ftp://issuer.example/keys"})),
            "providers[0].jwks.url: expected an http or https URL, without a user and a fragment",
        ),
        (
            with_jwks(json!({"url": "https://user:s3cret@issuer.example/keys"})),
            "providers[0].jwks.url: expected an http or https URL, without a user and a fragment",
        ),
        (
            with_jwks(json!({"url": "https://:s3cret@issuer.example/keys"})),
            "providers[0].jwks.url: expected an http or https URL, without a user and a fragment",
        ),
        (
            with_jwks(json!({"url": "https://issuer.example/keys#a"})),
            "providers[0].jwks.url: expected an http or https URL, without a user and a fragment",
        ),
        (
            with_jwks(json!({"keys": []})),
            "providers[0].jwks.keys: expected at least one key",
        ),
        (
            with_jwks(json!({"keys": {}})),
            "providers[0].jwks: expected an object with an array `keys`",
        ),
        (
            with_jwks(json!({"keys": vec![json!({}); 65]})),
            "providers[0].jwks: expected at most 64 keys",
        ),
        (
            one(json!({"kty": "oct", "k": "c2VjcmV0"})),
            "providers[0].jwks.keys[0]: expected the public part of a key; this one has its private part beside it",
        ),
        (
            key("d", json!("c2VjcmV0")),
            "providers[0].jwks.keys[0]: expected the public part of a key; this one has its private part beside it",
        ),
        (
            key("use", json!("enc")),
            "providers[0].jwks.keys[0]: expected a key for signatures (`use`: `sig`)",
        ),
        (
            key("key_ops", json!(["encrypt"])),
            "providers[0].jwks.keys[0]: expected a key to verify with (`verify` among its `key_ops`)",
        ),
        (
            key("crv", json!("P-384")),
            "providers[0].jwks.keys[0]: expected a key of kind RSA, EC on P-256, or OKP on Ed25519",
        ),
        (
            key("alg", json!("HS256")),
            "providers[0].jwks.keys[0]: expected an `alg` of RS256, ES256 or EdDSA that is for this kind of key",
        ),
        (
            key("alg", json!("RS256")),
            "providers[0].jwks.keys[0]: expected an `alg` of RS256, ES256 or EdDSA that is for this kind of key",
        ),
        (
            key("kid", json!(7)),
            "providers[0].jwks.keys[0]: expected a `kid` that is a string",
        ),
        (
            key("x", json!(zeros)),
            "providers[0].jwks.keys[0]: expected a valid public key",
        ),
        (
            key("x", json!("AAAA")),
            "providers[0].jwks.keys[0]: expected a P-256 key with `x` and `y` of 32 bytes, in base64url without padding",
        ),
        (
            // The verifier takes the first 32 bytes of whatever it gets, and panics when there are fewer.
            one(with(&ed().jwk(), "x", json!("AAAA"))),
            "providers[0].jwks.keys[0]: expected an Ed25519 key with `x` of 32 bytes, in base64url without padding",
        ),
        (
            one(with(&ed().jwk(), "x", json!("A".repeat(64)))),
            "providers[0].jwks.keys[0]: expected an Ed25519 key with `x` of 32 bytes, in base64url without padding",
        ),
        (
            one(small_rsa().jwk()),
            "providers[0].jwks.keys[0]: expected an RSA key of 2048 to 8192 bits",
        ),
        (
            one(with(&rsa().jwk(), "e", json!("AQ"))),
            "providers[0].jwks.keys[0]: expected a valid public key",
        ),
        (
            with_jwks(key_set(&[ec(), other_ec().with_kid("ec")])),
            "providers[0].jwks.keys[0]: expected a `kid` that no other key of the set has",
        ),
        (
            with_jwks(json!({"keys": [
                ec().jwk(), without(&rsa().jwk(), "kid"), without(&other_rsa().jwk(), "kid")]})),
            "providers[0].jwks.keys[1]: expected a `kid`, since other keys of the set have none either",
        ),
    ]);
}

/// No secret is shown (P1.5), neither when all is well nor when it is not.
#[tokio::test]
async fn nothing_shows_a_token() {
    let json = with_key(json!({"name": "a", "token": ["s3cret-t0ken", {"env": "A"}]}));
    let passport =
        passport_with_env(&json, |_| Some("s3cret-v4lue".to_owned())).expect("a passport");
    assert_eq!(name(&passport, "s3cret-v4lue").await.as_deref(), Some("a"));
    let shown = format!("{passport:?} {passport:#?}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

/// Any JSON, mostly of the shape of a passport, with a secret at every leaf.
fn nearly_a_passport() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!("s3cret")),
        Just(json!(null)),
        Just(json!(7)),
        Just(json!("staticToken")),
        Just(json!("jwt")),
        Just(json!("*")),
    ];
    let names = prop_oneof![
        Just("providers"),
        Just("namespaces"),
        Just("type"),
        Just("id"),
        Just("keys"),
        Just("name"),
        Just("token"),
        Just("env"),
        Just("scopes"),
        Just("claims"),
        Just("pinboard"),
        Just("allowedBackendHosts"),
        Just("issuer"),
        Just("audience"),
        Just("jwks"),
        Just("url"),
        Just("/threads"),
        Just("allow"),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|members| {
                Value::Object(
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

proptest! {
    #[test]
    fn an_error_names_a_place_and_no_value(json in nearly_a_passport()) {
        if let Err(error) = passport(&json) {
            let error = error.to_string();
            // The name of a variable is the one value that has to be told.
            prop_assume!(!error.contains("the variable"));
            prop_assert!(error.starts_with("PINBOARD_PASSPORT is invalid: "));
            prop_assert!(!error.contains("s3cret") || error.contains("is called"), "{}", error);
        }
    }
}
