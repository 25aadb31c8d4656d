//! No header makes the reader panic, and none is somebody's but the one with the token. A signed token, which gets past the signature,
//! is somebody's only when it says who, once.

#![no_main]

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, header};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey};
use libfuzzer_sys::fuzz_target;
use pinboard::passport::{Admitted, BEARER_PROTOCOL, Passport, remaining_protocols};
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
use pinned_domain::Domain;
use serde_json::{Value, json};

struct Nothing;

impl Fetcher for Nothing {
    fn fetch(&self, _: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        unreachable!("the keys are in the document")
    }
}

static KEY: LazyLock<EncodingKey> = LazyLock::new(|| {
    let mut der = vec![
        0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
    ];
    der.extend([7; 32]);
    EncodingKey::from_ed_der(&der)
});

static PASSPORT: LazyLock<Passport> = LazyLock::new(|| {
    let jwk = Jwk::from_encoding_key(&KEY, Algorithm::EdDSA).expect("a key");
    let mut jwk = json!(jwk);
    jwk["kid"] = json!("k");
    let document = json!({"providers": [
        {"type": "jwt", "id": "b", "issuer": "i", "audience": "a", "jwks": {"keys": [jwk]}},
        {"type": "staticToken", "id": "a", "keys": [{"name": "key", "token": "t0ken"}]}]});
    let fetcher: Arc<dyn Fetcher> = Arc::new(Nothing);
    Passport::parse(&document.to_string(), |_| None, &Domain::real(), &fetcher).expect("a passport")
});

fuzz_target!(|input: (&[u8], &[u8], &str, &str)| {
    let (authorization, protocols, header, claims) = input;

    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(protocols) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
    let left = remaining_protocols(&headers);
    let left = left.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
    assert!(
        !left
            .split(|byte| *byte == b',')
            .any(|entry| entry.trim_ascii().starts_with(BEARER_PROTOCOL.as_bytes()))
    );
    let by_protocol = admit(&headers);
    if by_protocol.account.is_some() {
        assert!(contains(protocols, b"pinboard.bearer.t0ken"));
        assert!(by_protocol.strip_bearer_subprotocol);
    }

    headers.clear();
    if let Ok(value) = HeaderValue::from_bytes(authorization) {
        headers.insert(header::AUTHORIZATION, value);
    }
    let by_header = admit(&headers);
    assert_eq!(by_header.account.is_some(), by_header.strip_authorization);
    assert!(by_header.account.is_none() || authorization.ends_with(b" t0ken"));

    // Around what the input says is what makes it worth a look.
    let header = format!(r#"{{"alg":"EdDSA","kid":"k"{header}}}"#);
    let claims = format!(r#"{{"iss":"i","aud":"a","exp":9e9{claims}}}"#);
    headers.clear();
    let token = format!("Bearer {}", sign(&header, &claims));
    headers.insert(
        header::AUTHORIZATION,
        HeaderValue::from_str(&token).expect("base64url"),
    );
    if let Some(account) = admit(&headers).account {
        let claims: Value = serde_json::from_str(&claims).expect("it was read");
        assert_eq!(claims["sub"], account.sub.as_str());
        assert!(!account.sub.is_empty());
        let header: Value = serde_json::from_str(&header).expect("it was read");
        assert!(header.get("crit").is_none() && header["alg"] == "EdDSA");
        // Remembered, it is the same.
        assert_eq!(admit(&headers).account, Some(account));
    }
});

fn admit(headers: &HeaderMap) -> Admitted {
    let answer = PASSPORT.admit("/threads", headers, true).now();
    answer
        .expect("nothing is fetched")
        .expect("anyone is admitted")
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn sign(header: &str, claims: &str) -> String {
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
    let signed = format!("{header}.{claims}");
    let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &KEY, Algorithm::EdDSA);
    format!("{signed}.{}", signature.expect("a key"))
}
