use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use pinned_wire::attestation::{Account, Caller, Claims, mint, same_secret, verify};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sha2::Sha256;

const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const AUD: &str = "session-1";
const NOW: i64 = 1_800_000_000;
const HEADER: &str = r#"{"alg":"HS256","typ":"pinboard+jwt"}"#;

fn at(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.try_into().expect("after 1970"))
}

/// Signs whatever it is given, as a careless or hostile holder of the secret might.
fn signed(header: &str, payload: &str) -> String {
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(payload)
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key");
    mac.update(text.as_bytes());
    format!(
        "{text}.{}",
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    )
}

fn check(token: &str) -> Option<Claims> {
    verify(SECRET, &[AUD], at(NOW), token)
}

/// A payload that verifies, with `members` put in or replaced.
fn payload(members: Value) -> String {
    let mut claims = json!({"aud": AUD, "iat": NOW, "exp": NOW + 30});
    let (Value::Object(claims), Value::Object(members)) = (&mut claims, members) else {
        panic!("objects")
    };
    claims.extend(members);
    serde_json::to_string(claims).expect("JSON")
}

fn segments(token: &str) -> [String; 3] {
    let parts: Vec<_> = token.split('.').map(str::to_owned).collect();
    parts.try_into().expect("three segments")
}

fn text(segment: &str) -> String {
    String::from_utf8(URL_SAFE_NO_PAD.decode(segment).expect("unpadded base64url")).expect("UTF-8")
}

// W8.1, W8.2, W8.3
#[test]
fn a_minted_token_has_the_form_of_the_contract() {
    let now = at(NOW) + Duration::from_millis(900);
    let token = mint(SECRET, &Claims::new(AUD, now).with_caller("/a/b", 2));
    let [header, claims, _] = segments(&token);
    assert_eq!(text(&header), HEADER);
    assert_eq!(
        text(&claims),
        r#"{"aud":"session-1","iat":1800000000,"exp":1800000030,"caller":"/a/b","depth":2}"#
    );
    assert_eq!(
        token,
        signed(HEADER, &text(&claims)),
        "signed with the text of the secret"
    );
    let bare = mint(SECRET, &Claims::new(AUD, now));
    assert_eq!(
        text(&segments(&bare)[1]),
        r#"{"aud":"session-1","iat":1800000000,"exp":1800000030}"#
    );
}

/// Computed apart from this code, with Python's `hmac` and `base64`.
// W8.1
#[test]
fn a_minted_token_is_the_one_that_other_implementations_mint() {
    let known = concat!(
        "eyJhbGciOiJIUzI1NiIsInR5cCI6InBpbmJvYXJkK2p3dCJ9.",
        "eyJhdWQiOiJzZXNzaW9uLTEiLCJpYXQiOjE4MDAwMDAwMDAsImV4cCI6MTgwMDAwMDAzMCwiY2FsbGVyIjoiL2EvYiIsImRlcHRoIjoyfQ.",
        "Eo5LfJgKgknXVrocBnLK9IJzRnVHQj2gDyzIcHnmEuc",
    );
    assert_eq!(
        mint(SECRET, &Claims::new(AUD, at(NOW)).with_caller("/a/b", 2)),
        known
    );
}

// W8.3
#[test]
fn an_account_and_a_chain_travel_in_the_token() {
    let mut extra = Map::new();
    extra.insert("plan".into(), json!({"seats": 3}));
    let account = Account::new("user-1")
        .with_claims(extra)
        .with_scopes(["write", "read"]);
    let claims = Claims::new(AUD, at(NOW))
        .with_account(account)
        .with_chain(vec![
            "/a/1 exclusive".to_owned(),
            "/b/2 shared 0f.1".to_owned(),
        ]);
    assert_eq!(check(&mint(SECRET, &claims)), Some(claims));
}

// W8.4
#[test]
fn an_unsigned_or_tampered_token_is_refused() {
    let good = signed(HEADER, &payload(json!({})));
    assert!(check(&good).is_some());
    let [header, claims, mac] = segments(&good);
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"pinboard+jwt"}"#);
    let other = URL_SAFE_NO_PAD.encode(payload(json!({"caller": "/a/root"})));
    let mut flipped = mac.clone().into_bytes();
    flipped[0] = if flipped[0] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).expect("ASCII");
    let refused = [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "...".to_owned(),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{none}.{claims}."),
        format!("{none}.{claims}.{mac}"),
        format!("{header}.{other}.{mac}"),
        format!("{header}.{claims}.{flipped}"),
        format!("{header}.{claims}.{mac}="),
        format!("{header}.{claims}.{}", &mac[..mac.len() - 1]),
        format!("{good}."),
        format!(".{good}"),
        format!("{good}.{mac}"),
        format!(" {good}"),
        format!("{good}\n"),
    ];
    for token in refused {
        assert_eq!(check(&token), None, "{token:?}");
    }
    assert_eq!(verify("another secret", &[AUD], at(NOW), &good), None);
}

// W8.2, W8.4
#[test]
fn only_the_one_header_is_accepted_whatever_signed_it() {
    let claims = payload(json!({}));
    for same in [
        r#"{"typ":"pinboard+jwt","alg":"HS256"}"#,
        r#" { "alg" : "HS256", "typ" : "pinboard\u002bjwt" } "#,
    ] {
        assert!(
            check(&signed(same, &claims)).is_some(),
            "equal as JSON: {same}"
        );
    }
    let refused = [
        r#"{"alg":"none","typ":"pinboard+jwt"}"#,
        r#"{"alg":"HS512","typ":"pinboard+jwt"}"#,
        r#"{"alg":"hs256","typ":"pinboard+jwt"}"#,
        r#"{"alg":"HS256","typ":"JWT"}"#,
        r#"{"alg":"HS256"}"#,
        r#"{"alg":"HS256","typ":"pinboard+jwt","kid":"1"}"#,
        r#"["HS256","pinboard+jwt"]"#,
        r#""HS256""#,
        "null",
        "{}",
        "",
    ];
    for header in refused {
        assert_eq!(check(&signed(header, &claims)), None, "{header}");
    }
}

// W8.4
#[test]
fn claims_are_one_object() {
    let array = format!(
        r#"["{AUD}",{NOW},{},"/a/b",1,["sub",{{}},[]],[]]"#,
        NOW + 30
    );
    for refused in [
        array.as_str(),
        "null",
        "[]",
        "\"\"",
        "1",
        "",
        "{",
        "{}{}",
        "\u{feff}{}",
    ] {
        assert_eq!(check(&signed(HEADER, refused)), None, "{refused}");
    }
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(check(&signed(HEADER, &deep)), None);
    assert!(
        check(&signed(
            HEADER,
            &payload(json!({"unknown": [1, {"a": null}]}))
        ))
        .is_some(),
        "others are ignored"
    );
}

// W8.3, W8.4: the shorter way of reading them is taken where nothing else is said
#[test]
fn claims_say_the_same_beside_members_that_are_not_known() {
    let claims = Claims::new(AUD, at(NOW))
        .with_caller("/a/b", 2)
        .with_account(Account::new("user-1").with_scopes(["read"]))
        .with_chain(vec!["/a/1 exclusive".to_owned()]);
    let Ok(Value::Object(mut members)) = serde_json::to_value(&claims) else {
        panic!("an object")
    };
    members.insert("jti".into(), json!([{"a": "aud"}]));
    let beside = payload(Value::Object(members));
    assert_eq!(check(&signed(HEADER, &beside)), Some(claims.clone()));
    // Whitespace before the object is JSON too.
    let plain = serde_json::to_string(&claims).expect("JSON");
    assert_eq!(
        check(&signed(HEADER, &format!("\n {plain} "))),
        Some(claims)
    );
}

// W8.4
#[test]
fn times_are_integers() {
    let bad = [
        json!(true),
        json!(1.8e9),
        json!(NOW as f64),
        json!("1800000000"),
        json!(null),
        json!([NOW]),
    ];
    for value in bad {
        for name in ["iat", "exp"] {
            let mut members = json!({});
            members[name] = value.clone();
            assert_eq!(
                check(&signed(HEADER, &payload(members))),
                None,
                "{name}: {value}"
            );
        }
    }
    for text in [
        "1e9",
        "1800000000.0",
        "99999999999999999999999999",
        "-1e400",
        "NaN",
    ] {
        let claims = format!(r#"{{"aud":"{AUD}","iat":{text},"exp":{}}}"#, NOW + 30);
        assert_eq!(check(&signed(HEADER, &claims)), None, "{text}");
    }
    for missing in ["aud", "iat", "exp"] {
        let mut claims: Value = serde_json::from_str(&payload(json!({}))).expect("JSON");
        claims.as_object_mut().expect("an object").remove(missing);
        assert_eq!(
            check(&signed(HEADER, &claims.to_string())),
            None,
            "no {missing}"
        );
    }
}

// W8.4
#[test]
fn a_token_is_good_from_leeway_before_to_leeway_after_ends_included() {
    let token = mint(SECRET, &Claims::new(AUD, at(NOW)));
    let nano = Duration::from_nanos(1);
    let good = |now| verify(SECRET, &[AUD], now, &token).is_some();
    assert!(good(at(NOW - 30)) && good(at(NOW + 60)));
    assert!(!good(at(NOW - 30) - nano) && !good(at(NOW + 60) + nano));
    assert!(!good(SystemTime::UNIX_EPOCH - nano));
}

// W8.4
#[test]
fn the_span_of_a_token_has_no_bound() {
    for exp in [NOW + 1_000_000_000, i64::MAX] {
        assert!(
            check(&signed(
                HEADER,
                &payload(json!({"exp": exp, "iat": i64::MIN}))
            ))
            .is_some()
        );
    }
    assert_eq!(
        check(&signed(
            HEADER,
            &payload(json!({"iat": i64::MAX, "exp": i64::MIN}))
        )),
        None
    );
}

// W8.4, W8.5, W8.6
#[test]
fn the_audience_is_one_string_out_of_those_accepted() {
    let token = signed(HEADER, &payload(json!({})));
    assert!(verify(SECRET, &["local", AUD], at(NOW), &token).is_some());
    assert_eq!(
        verify(SECRET, &["session-0", "session-11", ""], at(NOW), &token),
        None
    );
    assert_eq!(verify(SECRET, &[], at(NOW), &token), None);
    for aud in [json!([AUD]), json!(null), json!(1), json!({"a": AUD})] {
        assert_eq!(
            check(&signed(HEADER, &payload(json!({"aud": aud})))),
            None,
            "{aud}"
        );
    }
}

// W8.3, W8.4
#[test]
fn optional_members_are_of_their_type_or_absent() {
    let bad = [
        json!({"caller": null}),
        json!({"caller": 1}),
        json!({"caller": ["/a", "b"]}),
        json!({"depth": null}),
        json!({"depth": true}),
        json!({"depth": 1.0}),
        json!({"depth": "1"}),
        json!({"depth": -1}),
        json!({"acct": null}),
        json!({"acct": "user"}),
        json!({"acct": ["user", {}, []]}),
        json!({"acct": {}}),
        json!({"acct": {"sub": null}}),
        json!({"acct": {"sub": 1}}),
        json!({"acct": {"sub": "u", "scopes": null}}),
        json!({"acct": {"sub": "u", "scopes": "read"}}),
        json!({"acct": {"sub": "u", "scopes": ["read", 1]}}),
        json!({"acct": {"sub": "u", "claims": null}}),
        json!({"acct": {"sub": "u", "claims": []}}),
        json!({"chain": null}),
        json!({"chain": "/a/b"}),
        json!({"chain": [1]}),
    ];
    for members in bad {
        assert_eq!(
            check(&signed(HEADER, &payload(members.clone()))),
            None,
            "{members}"
        );
    }
    let plain = check(&signed(
        HEADER,
        &payload(json!({"acct": {"sub": "u", "other": null}})),
    ))
    .expect("good");
    assert_eq!(plain.acct, Some(Account::new("u")));
}

// W8.7
#[test]
fn a_calling_instance_counts_before_an_account_and_a_broken_one_is_nobody() {
    let who = |members| Caller::from(check(&signed(HEADER, &payload(members))).expect("good"));
    let instance = |ns: &str, id: &str, depth| Caller::Instance {
        ns: ns.into(),
        id: id.into(),
        depth,
    };
    assert_eq!(
        who(json!({"caller": "/threads/t1"})),
        instance("/threads", "t1", 0)
    );
    assert_eq!(
        who(json!({"caller": "/a/b/c", "depth": 3})),
        instance("/a/b", "c", 3)
    );
    assert_eq!(
        who(json!({"caller": "/a/b", "acct": {"sub": "u"}})),
        instance("/a", "b", 0)
    );
    for broken in ["", "/", "a", "/a", "/a/"] {
        assert_eq!(
            who(json!({"caller": broken, "acct": {"sub": "u"}})),
            Caller::Anonymous,
            "{broken:?}"
        );
    }
    let account = Account::new("u").with_scopes(["read"]);
    assert_eq!(
        who(json!({"acct": {"sub": "u", "scopes": ["read", "read"]}})),
        Caller::Account(account)
    );
    assert_eq!(who(json!({"depth": 4})), Caller::Anonymous);
    assert_eq!(who(json!({})), Caller::Anonymous);
}

// W10.1
#[test]
fn a_secret_is_itself_and_nothing_else() {
    assert!(same_secret(SECRET, SECRET.as_bytes()));
    for other in [
        "",
        &SECRET[1..],
        &SECRET.to_uppercase(),
        &format!("{SECRET} "),
    ] {
        assert!(!same_secret(SECRET, other.as_bytes()), "{other}");
    }
}

prop_compose! {
    fn accounts()(sub: String, scopes: Vec<String>, claims: std::collections::BTreeMap<String, i64>) -> Account {
        let claims = claims.into_iter().map(|(name, value)| (name, json!(value))).collect();
        Account::new(sub).with_scopes(scopes).with_claims(claims)
    }
}

proptest! {
    #[test]
    fn what_is_minted_verifies_as_itself_and_under_no_other_secret(
        aud: String,
        secret: String,
        caller in proptest::option::of((any::<String>(), any::<u64>())),
        account in proptest::option::of(accounts()),
        chain: Option<Vec<String>>,
        now in 0..100_000_000_000_i64,
    ) {
        let mut claims = Claims::new(aud.as_str(), at(now));
        if let Some((caller, depth)) = caller {
            claims = claims.with_caller(caller, depth);
        }
        if let Some(account) = account {
            claims = claims.with_account(account);
        }
        if let Some(chain) = chain {
            claims = claims.with_chain(chain);
        }
        let token = mint(&secret, &claims);
        let verified = verify(&secret, &[&aud], at(now), &token);
        prop_assert_eq!(verified, Some(claims));
        prop_assert_eq!(verify(&format!("{secret}x"), &[&aud], at(now), &token), None);
    }

    #[test]
    fn a_token_with_any_byte_changed_is_refused(place: prop::sample::Index, byte in 0x20..0x7f_u8) {
        let token = mint(SECRET, &Claims::new(AUD, at(NOW)).with_caller("/a/b", 1));
        let mut changed = token.clone().into_bytes();
        let place = place.index(changed.len());
        changed[place] = byte;
        let changed = String::from_utf8(changed).expect("ASCII");
        prop_assert_eq!(check(&changed).is_some(), changed == token);
    }

    #[test]
    fn no_text_makes_it_panic(token: String, header: String, claims: String) {
        prop_assert_eq!(check(&token), None);
        let _ = check(&signed(&header, &claims));
        let _ = check(&signed(HEADER, &claims));
    }
}
