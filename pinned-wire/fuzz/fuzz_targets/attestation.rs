//! No token makes the verifier panic. Unsigned ones never pass; signed ones, which get past the signature to the
//! parsers, pass only with the one header, and what they said can be minted again.

#![no_main]

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use libfuzzer_sys::fuzz_target;
use pinned_wire::attestation::{Caller, mint, verify};
use sha2::Sha256;

const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const AUDIENCES: [&str; 2] = ["session", ""];
const HEADER: &str = r#"{"alg":"HS256","typ":"pinboard+jwt"}"#;

fuzz_target!(|input: (&str, Option<&str>, &str, u32)| {
    let (token, header, claims, now) = input;
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(now.into());
    assert_eq!(verify(SECRET, &AUDIENCES, now, token), None);

    let Some(claims) = verify(
        SECRET,
        &AUDIENCES,
        now,
        &sign(header.unwrap_or(HEADER), claims),
    ) else {
        return;
    };
    assert_eq!(
        verify(SECRET, &AUDIENCES, now, &mint(SECRET, &claims)).as_ref(),
        Some(&claims)
    );
    if let Caller::Instance { ns, id, .. } = Caller::from(claims) {
        assert!(!ns.is_empty() && !id.is_empty() && !id.contains('/'));
    }
});

fn sign(header: &str, claims: &str) -> String {
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key");
    mac.update(text.as_bytes());
    format!(
        "{text}.{}",
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    )
}
