//! The provider `jwt`: which tokens it vouches for.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey};
use pinboard::passport::{Denied, Grants, Passport};
use pinned_testing::capture_logs;
use pinned_testing::sim::{Sim, SimOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::issuer::{
    AUDIENCE, ISSUER, START, SigningKey, claims, document, ec, ed, key_set, other_ec, other_ed,
    other_rsa, provider, rsa, unsigned, with, without,
};
use super::support::{bearer, name, no_fetcher, who};

/// Runs a test against a provider, from [`START`] on.
fn run<F, Fut>(provider: Value, test: F)
where
    F: FnOnce(Passport, Sim) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Sim::run(1, move |sim| async move {
        let json = document(provider).to_string();
        let passport = Passport::parse(&json, |_| None, &sim.domain(), &no_fetcher());
        test(passport.expect("a passport"), sim.clone()).await;
    });
}

/// A provider with a key of each kind, whose tokens say more.
fn full_provider() -> Value {
    provider(key_set(&[rsa(), ec(), ed()]))
}

/// Asserts of tokens by the name of what is wrong with them that nobody stands behind any.
async fn assert_nobodys(passport: &Passport, tokens: impl IntoIterator<Item = (&str, String)>) {
    for (wrong, token) in tokens {
        assert_eq!(name(passport, &token).await, None, "{wrong}: {token}");
    }
}

// P7.3
#[test]
fn each_kind_of_key_vouches() {
    run(full_provider(), |passport, _| async move {
        for key in [rsa(), ec(), ed()] {
            let token = key.sign(&claims());
            // The second time it is remembered.
            for _ in 0..2 {
                assert_eq!(name(&passport, &token).await.as_deref(), Some("alice"));
            }
        }
    });
}

// P7.3
#[test]
fn the_account_has_the_subject_the_scopes_and_the_claims() {
    run(full_provider(), |passport, _| async move {
        let claims = with(&claims(), "scope", json!("read  threads:write"));
        let claims = with(&claims, "nbf", json!(START));
        let claims = with(&claims, "jti", json!("7"));
        let claims = with(&claims, "team", json!(["blue"]));
        let pinboard =
            json!({"namespaces": ["/threads"], "allowedBackendHosts": ["10.0.0.0/8"], "more": 1});
        let claims = with(&claims, "pinboard", pinboard.clone());
        let alice = who(&passport, &ed().sign(&claims)).await.expect("alice");
        assert!(alice.has("read") && alice.has("threads:write"));
        assert_eq!(alice.account.scopes.len(), 2);
        // What is about the token is not about alice.
        assert_eq!(
            Value::Object(alice.account.claims.clone()),
            json!({"team": ["blue"], "pinboard": pinboard})
        );
        assert!(alice.grants.covers_namespace("/threads") && !alice.grants.covers_namespace("/a"));
        assert!(alice.grants.allows_address("any", [10, 0, 0, 1].into()));
    });
}

// P7.3
#[test]
fn the_claims_to_read_can_be_named() {
    let provider = with(&full_provider(), "scopesClaim", json!("https://a/roles"));
    let provider = with(&provider, "claimsClaim", json!("https://a/claims"));
    run(provider, |passport, _| async move {
        let plain = with(&claims(), "scope", json!("admin"));
        let alice = who(&passport, &ed().sign(&plain)).await.expect("alice");
        assert!(alice.account.scopes.is_empty() && alice.account.claims.is_empty());

        let named = with(&plain, "https://a/roles", json!(["read", "two words"]));
        let named = with(
            &named,
            "https://a/claims",
            json!({"pinboard": {"namespaces": ["*"]}}),
        );
        let alice = who(&passport, &ed().sign(&named)).await.expect("alice");
        assert!(alice.has("read") && alice.has("two words") && !alice.has("admin"));
        assert!(alice.grants.is_unrestricted());
    });
}

// P7.3
#[test]
fn claims_of_the_wrong_type_are_nobodys() {
    let provider = with(&full_provider(), "claimsClaim", json!("app"));
    run(provider, |passport, _| async move {
        let cases = [
            ("sub missing", without(&claims(), "sub")),
            ("sub empty", with(&claims(), "sub", json!(""))),
            ("sub a number", with(&claims(), "sub", json!(7))),
            ("scope a number", with(&claims(), "scope", json!(7))),
            (
                "scope with a number",
                with(&claims(), "scope", json!(["read", 7])),
            ),
            ("claims an array", with(&claims(), "app", json!([]))),
            ("claims null", with(&claims(), "app", json!(null))),
        ];
        let tokens = cases.map(|(wrong, claims)| (wrong, ed().sign(&claims)));
        assert_nobodys(&passport, tokens).await;
    });
}

// P2.2
#[test]
fn malformed_grants_of_a_token_grant_nothing_and_are_told_now_and_then() {
    let logs = capture_logs();
    run(full_provider(), |passport, sim| async move {
        let malformed = [
            json!([]),
            json!({"namespaces": "*"}),
            json!({"namespaces": ["*"], "envs": [7]}),
            json!({"namespaces": ["*"], "allowedBackendHosts": ["10.0.0.1/8"]}),
        ];
        for pinboard in &malformed {
            let token = ed().sign(&with(&claims(), "pinboard", pinboard.clone()));
            let alice = who(&passport, &token).await.expect("alice all the same");
            assert_eq!(*alice.grants, Grants::default(), "{pinboard}");
        }
        sim.domain().sleep(Duration::from_secs(60)).await;
        let claims = with(&claims(), "pinboard", json!(7));
        who(&passport, &ed().sign(&claims)).await.expect("alice");
    });
    let told = logs.with_target("pinboard::passport::jwt::provider");
    assert_eq!(told.len(), 2, "{told:?}");
    let error = told[0].field("error").expect("the error");
    assert_eq!(error, "claims.pinboard: expected an object, found an array");
}

// P7.3
#[test]
fn the_algorithm_is_the_keys_and_not_the_tokens() {
    run(full_provider(), |passport, _| async move {
        let alg = |key: &SigningKey, alg: &str| with(&key.header(), "alg", json!(alg));
        let hmac = |secret: &[u8], header: &Value| {
            let signed = unsigned(&header.to_string(), &claims().to_string());
            let key = EncodingKey::from_secret(secret).expect("a secret");
            let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &key, Algorithm::HS256);
            format!("{signed}.{}", signature.expect("signed"))
        };
        let decode = |name: &str, jwk: Value| {
            let text = jwk[name].as_str().expect("a string").to_owned();
            (URL_SAFE_NO_PAD.decode(&text).expect("base64url"), text)
        };
        let (modulus, modulus_text) = decode("n", rsa().jwk());
        let (point, point_text) = decode("x", ed().jwk());
        let none = |alg: &str, signature: &str| {
            let header = json!({"alg": alg, "typ": "JWT", "kid": "ed"});
            let signed = unsigned(&header.to_string(), &claims().to_string());
            format!("{signed}.{signature}")
        };
        let good = ed().sign(&claims());
        let (_, signature) = good.rsplit_once('.').expect("three parts");
        let tokens = [
            ("alg none", none("none", "")),
            ("alg None", none("None", "")),
            ("alg none with a signature", none("none", signature)),
            ("alg empty", none("", signature)),
            (
                "alg missing",
                rsa().sign_as(&without(&rsa().header(), "alg"), &claims()),
            ),
            (
                "the RSA modulus as a secret",
                hmac(&modulus, &alg(&rsa(), "HS256")),
            ),
            (
                "its text as a secret",
                hmac(modulus_text.as_bytes(), &alg(&rsa(), "HS256")),
            ),
            (
                "the Ed25519 point as a secret",
                hmac(&point, &alg(&ed(), "HS256")),
            ),
            (
                "its text as a secret",
                hmac(point_text.as_bytes(), &alg(&ed(), "HS256")),
            ),
            ("an HMAC called RS256", hmac(&modulus, &rsa().header())),
            ("an HMAC called EdDSA", hmac(&point, &ed().header())),
            (
                "RS256 called RS512",
                rsa().sign_as(&alg(&rsa(), "RS512"), &claims()),
            ),
            (
                "RS256 called PS256",
                rsa().sign_as(&alg(&rsa(), "PS256"), &claims()),
            ),
            (
                "RS256 called ES256",
                rsa().sign_as(&alg(&rsa(), "ES256"), &claims()),
            ),
            (
                "ES256 called ES384",
                ec().sign_as(&alg(&ec(), "ES384"), &claims()),
            ),
            (
                "EdDSA called ES256",
                ed().sign_as(&alg(&ed(), "ES256"), &claims()),
            ),
            (
                "a key of the set under the id of another",
                rsa().with_kid("ed").sign(&claims()),
            ),
            (
                "the same, with the algorithm of that one",
                ec().sign_as(&ed().header(), &claims()),
            ),
        ];
        assert_nobodys(&passport, tokens).await;
    });
}

// P7.3
#[test]
fn the_key_is_one_of_the_set_and_named_by_its_id() {
    run(full_provider(), |passport, _| async move {
        let kid = |value: Value| ed().sign_as(&with(&ed().header(), "kid", value), &claims());
        let brought = with(&other_ed().with_kid("ed").header(), "jwk", other_ed().jwk());
        let tokens = [
            (
                "signed by another RSA key",
                other_rsa().with_kid("rsa").sign(&claims()),
            ),
            (
                "signed by another EC key",
                other_ec().with_kid("ec").sign(&claims()),
            ),
            (
                "signed by another Ed25519 key",
                other_ed().with_kid("ed").sign(&claims()),
            ),
            ("an unknown key", other_ed().sign(&claims())),
            (
                "no key id although there are three",
                ed().sign_as(&without(&ed().header(), "kid"), &claims()),
            ),
            ("an empty key id", kid(json!(""))),
            ("a key id that is a number", kid(json!(7))),
            ("a key id in another case", kid(json!("ED"))),
            (
                "a key that the token brings",
                other_ed().sign_as(&brought, &claims()),
            ),
            (
                "two key ids",
                ed().sign_text(
                    r#"{"alg":"EdDSA","kid":"ed","kid":"ed"}"#,
                    &claims().to_string(),
                ),
            ),
        ];
        assert_nobodys(&passport, tokens).await;
    });
}

// P7.3
#[test]
fn the_only_key_needs_no_id() {
    run(provider(key_set(&[ec()])), |passport, _| async move {
        let nameless = ec().sign_as(&json!({"alg": "ES256"}), &claims());
        assert_eq!(name(&passport, &nameless).await.as_deref(), Some("alice"));
        let forged = other_ec().sign_as(&json!({"alg": "ES256"}), &claims());
        assert_nobodys(&passport, [("another key", forged)]).await;
    });
    let nameless = json!({"inline": {"keys": [without(&ec().jwk(), "kid")]}});
    run(provider(nameless), |passport, _| async move {
        let token = ec().sign_as(&json!({"alg": "ES256"}), &claims());
        assert_eq!(name(&passport, &token).await.as_deref(), Some("alice"));
        assert_nobodys(&passport, [("it names one", ec().sign(&claims()))]).await;
    });
}

// P7.3
#[test]
fn tokens_for_other_purposes_are_nobodys() {
    run(full_provider(), |passport, _| async move {
        let header =
            |name: &str, value: Value| ed().sign_as(&with(&ed().header(), name, value), &claims());
        for good in [
            "JWT",
            "jwt",
            "at+jwt",
            "application/at+jwt",
            "APPLICATION/JWT",
        ] {
            let token = header("typ", json!(good));
            assert_eq!(
                name(&passport, &token).await.as_deref(),
                Some("alice"),
                "{good}"
            );
        }
        let untyped = ed().sign_as(&without(&ed().header(), "typ"), &claims());
        assert_eq!(name(&passport, &untyped).await.as_deref(), Some("alice"));
        let tokens = [
            ("a logout token", header("typ", json!("logout+jwt"))),
            ("a proof of possession", header("typ", json!("dpop+jwt"))),
            ("an attestation", header("typ", json!("pinboard+jwt"))),
            ("an empty type", header("typ", json!(""))),
            ("a type that is a number", header("typ", json!(7))),
            ("an extension to understand", header("crit", json!(["exp"]))),
            ("an empty list of extensions", header("crit", json!([]))),
            ("a payload that is not encoded", header("b64", json!(false))),
            (
                "the extension b64",
                ed().sign_as(
                    &with(
                        &with(&ed().header(), "b64", json!(true)),
                        "crit",
                        json!(["b64"]),
                    ),
                    &claims(),
                ),
            ),
            ("compressed", header("zip", json!("DEF"))),
            ("encrypted", header("enc", json!("A256GCM"))),
        ];
        assert_nobodys(&passport, tokens).await;
    });
}

// P7.3
#[test]
fn the_issuer_and_the_audience_are_asked() {
    let provider = with(&full_provider(), "audience", json!([AUDIENCE, "other"]));
    run(provider, |passport, _| async move {
        let claim = |name: &str, value: Value| ed().sign(&with(&claims(), name, value));
        for aud in [json!(AUDIENCE), json!("other"), json!(["third", "other"])] {
            let token = claim("aud", aud);
            assert_eq!(name(&passport, &token).await.as_deref(), Some("alice"));
        }
        let tokens = [
            ("no issuer", ed().sign(&without(&claims(), "iss"))),
            (
                "another issuer",
                claim("iss", json!("https://evil.example")),
            ),
            ("a longer issuer", claim("iss", json!(format!("{ISSUER}/")))),
            ("issuers", claim("iss", json!([ISSUER]))),
            ("no audience", ed().sign(&without(&claims(), "aud"))),
            ("another audience", claim("aud", json!("third"))),
            ("no audiences", claim("aud", json!([]))),
            (
                "an audience that is a number",
                claim("aud", json!([AUDIENCE, 7])),
            ),
            (
                "an audience that is an object",
                claim("aud", json!({AUDIENCE: true})),
            ),
        ];
        assert_nobodys(&passport, tokens).await;
    });
}

// P7.3: 30 s either way, by the domain's wall clock
#[test]
fn a_token_is_good_from_its_beginning_to_its_end() {
    run(full_provider(), |passport, sim| async move {
        let token = |begin: Option<u64>, end: u64| {
            let claims = with(&claims(), "exp", json!(end));
            ed().sign(&match begin {
                Some(begin) => with(&claims, "nbf", json!(begin)),
                None => claims,
            })
        };
        let is_good = async |token: &String| name(&passport, token).await.is_some();
        let (now, hour) = (START, START + 3600);
        assert!(is_good(&token(None, now)).await);
        assert!(is_good(&token(None, now - 29)).await);
        assert!(!is_good(&token(None, now - 30)).await);
        assert!(!is_good(&token(None, 0)).await);
        assert!(is_good(&token(Some(now + 30), hour)).await);
        assert!(!is_good(&token(Some(now + 31), hour)).await);
        assert!(!is_good(&token(Some(u64::MAX), u64::MAX)).await);
        assert!(is_good(&token(Some(0), u64::MAX)).await);
        // Remembering a token does not lengthen its life, nor does having been too early shorten it.
        let (ending, beginning) = (token(None, now), token(Some(now + 40), hour));
        assert!(is_good(&ending).await && !is_good(&beginning).await);
        sim.domain().sleep(Duration::from_millis(29_999)).await;
        assert!(is_good(&ending).await && is_good(&beginning).await);
        sim.domain().sleep(Duration::from_millis(1)).await;
        assert!(!is_good(&ending).await && is_good(&beginning).await);
    });
}

// P7.3
#[test]
fn the_end_is_required_and_all_times_are_numbers() {
    run(full_provider(), |passport, _| async move {
        let claim = |name: &str, value: Value| ed().sign(&with(&claims(), name, value));
        let float = claim("exp", json!(START as f64 + 0.5));
        assert_eq!(name(&passport, &float).await.as_deref(), Some("alice"));
        let far = claim("exp", json!(1e300));
        assert_eq!(name(&passport, &far).await.as_deref(), Some("alice"));
        let tokens = [
            ("no end", ed().sign(&without(&claims(), "exp"))),
            ("an end that is null", claim("exp", json!(null))),
            (
                "an end that is text",
                claim("exp", json!((START + 60).to_string())),
            ),
            ("an end before all time", claim("exp", json!(-1e300))),
            ("a beginning that is text", claim("nbf", json!("0"))),
            ("a beginning that is null", claim("nbf", json!(null))),
        ];
        assert_nobodys(&passport, tokens).await;
    });
}

/// A wall clock before 1970 is a wrong one, not a crash.
#[test]
fn a_clock_before_all_time_is_survived() {
    let epoch = SystemTime::UNIX_EPOCH - Duration::from_secs(10);
    let outcome = Sim::try_run(SimOptions::new(1).wall_epoch(epoch), |sim| async move {
        let json = document(full_provider()).to_string();
        let passport = Passport::parse(&json, |_| None, &sim.domain(), &no_fetcher());
        let passport = passport.expect("a passport");
        let early = with(&claims(), "nbf", json!(START));
        assert_eq!(name(&passport, &ed().sign(&early)).await, None);
    });
    assert!(outcome.is_ok());
}

// P7.3
#[test]
fn a_token_that_was_changed_anywhere_is_nobodys() {
    run(full_provider(), |passport, _| async move {
        let token = ed().sign(&claims());
        assert_eq!(name(&passport, &token).await.as_deref(), Some("alice"));
        let parts: Vec<_> = token.split('.').collect();
        let [header, payload, signature] = parts[..] else {
            unreachable!("three parts")
        };
        let padded = URL_SAFE.encode(claims().to_string());
        // The same bytes, with bits set in the last character that belong to none of them.
        let respelled = {
            let mut text = signature.to_owned();
            let last = text.pop().expect("not empty");
            text.push(char::from_u32(u32::from(last) + 1).expect("a character"));
            text
        };
        let twice = r#"{"iss":"https://issuer.example","aud":"pinboard","sub":"alice","sub":"bob","exp":1800003600}"#;
        let tokens = [
            ("no signature", format!("{header}.{payload}.")),
            ("two parts", format!("{header}.{payload}")),
            ("four parts", format!("{header}.{payload}.{signature}.")),
            ("five parts", format!("{header}.{payload}.{signature}.a.b")),
            ("parts exchanged", format!("{payload}.{header}.{signature}")),
            ("padding", format!("{header}.{padded}=.{signature}")),
            (
                "a second spelling of the signature",
                format!("{header}.{payload}.{respelled}"),
            ),
            (
                "a longer signature",
                format!("{header}.{payload}.{signature}AAAA"),
            ),
            (
                "another payload",
                format!(
                    "{header}.{}.{signature}",
                    URL_SAFE_NO_PAD.encode(r#"{"sub":"bob"}"#)
                ),
            ),
            (
                "a claim twice",
                ed().sign_text(&ed().header().to_string(), twice),
            ),
            ("an array", ed().sign_as(&ed().header(), &json!([]))),
            (
                "no JSON",
                ed().sign_text(&ed().header().to_string(), "alice"),
            ),
            (
                "a header that is no JSON",
                ed().sign_text("alice", &claims().to_string()),
            ),
            (
                "a nested token",
                ed().sign_text(&ed().header().to_string(), &token),
            ),
            ("dots", "..".to_owned()),
        ];
        assert_nobodys(&passport, tokens).await;
    });
}

// P7.1
#[test]
fn each_issuer_vouches_for_its_own() {
    Sim::run(1, |sim| async move {
        let other = with(&provider(key_set(&[other_ed()])), "id", json!("other"));
        let other = with(&other, "issuer", json!("https://other.example"));
        let json = json!({"providers": [
            full_provider(),
            other,
            {"type": "staticToken", "id": "p", "keys": [{"name": "key", "token": "t0ken"}]}],
            "namespaces": {"/narrow": {"allow": "scope:read"}}});
        let passport = Passport::parse(&json.to_string(), |_| None, &sim.domain(), &no_fetcher());
        let passport = passport.expect("a passport");
        let bob = json!({"iss": "https://other.example", "aud": AUDIENCE, "sub": "bob", "exp": START + 60, "scope": "read"});
        assert_eq!(
            name(&passport, &other_ed().sign(&bob)).await.as_deref(),
            Some("bob")
        );
        assert_eq!(
            name(&passport, &ed().sign(&claims())).await.as_deref(),
            Some("alice")
        );
        assert_eq!(name(&passport, "t0ken").await.as_deref(), Some("key"));
        let tokens = [
            ("the key of the first", ed().sign(&bob)),
            ("the key of the second", other_ed().sign(&claims())),
        ];
        assert_nobodys(&passport, tokens).await;

        // P7.4
        let ask = |token: &str| {
            passport
                .admit("/narrow", &bearer(token), false)
                .now()
                .expect("ready")
        };
        assert!(
            ask(&other_ed().sign(&bob))
                .expect("it has the scope")
                .account
                .is_some()
        );
        assert_eq!(ask(&ed().sign(&claims())), Err(Denied::Forbidden));
        assert_eq!(ask("wrong"), Err(Denied::Unauthenticated));
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_a_token_of_nobody(parts in prop::collection::vec("[A-Za-z0-9_-]{0,40}", 1..5)) {
        let token = parts.join(".");
        run(full_provider(), move |passport, _| async move {
            assert_eq!(name(&passport, &token).await, None);
        });
    }

    #[test]
    fn no_single_change_of_a_good_token_is_good(at in 0_usize..1_000, to in "[A-Za-z0-9_.-]") {
        let token = ed().sign(&claims());
        let at = at % token.len();
        let mut changed = token.clone();
        changed.replace_range(at..=at, &to);
        prop_assume!(changed != token);
        run(full_provider(), move |passport, _| async move {
            assert_eq!(name(&passport, &changed).await, None, "{changed}");
        });
    }
}
