//! The form of a token: signing and checking it.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::Claims;

/// How far the clocks of the two sides may differ.
pub const LEEWAY: Duration = Duration::from_secs(30);

pub(super) const NANOS: i128 = 1_000_000_000;

const HEADER: &str = r#"{"alg":"HS256","typ":"pinboard+jwt"}"#;

/// Signs `claims` under `secret`, the worker secret as text.
#[must_use]
pub fn mint(secret: &str, claims: &Claims) -> String {
    let mut token = URL_SAFE_NO_PAD.encode(HEADER);
    token.push('.');
    let payload =
        serde_json::to_vec(claims).expect("claims are plain JSON, which can always be written");
    URL_SAFE_NO_PAD.encode_string(payload, &mut token);
    let mac = sign(secret, &token);
    token.push('.');
    token.push_str(&mac);
    token
}

/// Checks `token` and gives what it says; `None` when anything at all is wrong with it.
///
/// The signature comes first, and is compared in constant time; only what was signed under `secret` is parsed.
/// `audiences` are those that the token may be for, and `now` may be off by [`LEEWAY`] either way, ends included.
#[must_use]
pub fn verify(secret: &str, audiences: &[&str], now: SystemTime, token: &str) -> Option<Claims> {
    let (signed, mac) = token.rsplit_once('.')?;
    let (header, payload) = signed.split_once('.')?;
    if payload.contains('.') || !same_secret(&sign(secret, signed), mac.as_bytes()) {
        return None;
    }
    let header: Value = decode(header)?;
    if header != json!({"alg": "HS256", "typ": "pinboard+jwt"}) {
        return None;
    }
    // By way of a map, because serde would take an array for a struct.
    let claims = Claims::deserialize(Value::Object(decode(payload)?)).ok()?;
    (claims.is_timely(now) && audiences.contains(&claims.aud.as_str())).then_some(claims)
}

impl Claims {
    /// Whether a token with these claims is good at `now`, which may be off by [`LEEWAY`] either way, ends included.
    #[must_use]
    pub fn is_timely(&self, now: SystemTime) -> bool {
        (nanos(self.iat, -1)..=nanos(self.exp, 1)).contains(&unix_nanos(now))
    }
}

/// Whether `given` is the secret that was expected, found out in a time that depends on the lengths alone.
#[must_use]
pub fn same_secret(expected: &str, given: &[u8]) -> bool {
    expected.as_bytes().ct_eq(given).into()
}

/// The encoded signature. Comparing encoded ones leaves no second spelling of a valid token.
fn sign(secret: &str, signed: &str) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of every length");
    mac.update(signed.as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

fn decode<T: DeserializeOwned>(segment: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(segment).ok()?).ok()
}

/// A claim of time, moved by the leeway one way or the other.
fn nanos(seconds: i64, leeways: i128) -> i128 {
    i128::from(seconds) * NANOS + leeways * LEEWAY.as_nanos() as i128
}

pub(super) fn unix_nanos(at: SystemTime) -> i128 {
    match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => after.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    }
}
