//! The form of a token: signing and checking it.

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize as _;
use serde_json::{Value, json};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::Claims;
use super::claims::KnownClaims;

/// How far the clocks of the two sides may differ.
pub const LEEWAY: Duration = Duration::from_secs(30);

pub(super) const NANOS: i128 = 1_000_000_000;

/// `{"alg":"HS256","typ":"pinboard+jwt"}` as it stands in a token.
const ENCODED_HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6InBpbmJvYXJkK2p3dCJ9";

/// The length of an encoded signature.
const SIGNATURE: usize = 43;

/// The key of one worker's tokens: its secret, made ready for signing once.
///
/// ```
/// use std::time::SystemTime;
/// use pinned_wire::attestation::{Claims, TokenKey};
///
/// let (key, now) = (TokenKey::new("0f1e2d"), SystemTime::now());
/// let token = key.mint(&Claims::new("session-1", now));
/// assert!(key.verify(&["session-1"], now, &token).is_some());
/// assert!(TokenKey::new("another secret").verify(&["session-1"], now, &token).is_none());
/// ```
#[derive(Clone)]
pub struct TokenKey {
    keyed: Hmac<Sha256>,
}

impl TokenKey {
    /// The key that `secret`, the worker secret as text, stands for.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self {
            keyed: Hmac::new_from_slice(secret.as_bytes())
                .expect("HMAC takes keys of every length"),
        }
    }

    /// Signs `claims`.
    #[must_use]
    pub fn mint(&self, claims: &Claims) -> String {
        let payload =
            serde_json::to_vec(claims).expect("claims are plain JSON, which can always be written");
        let length = ENCODED_HEADER.len() + payload.len().div_ceil(3) * 4 + SIGNATURE + 2;
        let mut token = String::with_capacity(length);
        token.push_str(ENCODED_HEADER);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(payload, &mut token);
        let signature = self.sign(&token);
        token.push('.');
        token.push_str(as_text(&signature));
        token
    }

    /// Checks `token` and gives what it says; `None` when anything at all is wrong with it.
    ///
    /// The signature comes first, and is compared in constant time; only what was signed with this key is parsed.
    /// `audiences` are those that the token may be for, and `now` may be off by [`LEEWAY`] either way, ends included.
    #[must_use]
    pub fn verify(&self, audiences: &[&str], now: SystemTime, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        if payload.contains('.') || !same_secret(as_text(&self.sign(signed)), signature.as_bytes())
        {
            return None;
        }
        if header != ENCODED_HEADER && !is_the_header(header) {
            return None;
        }
        let claims = read_claims(&URL_SAFE_NO_PAD.decode(payload).ok()?)?;
        (claims.is_timely(now) && audiences.contains(&claims.aud.as_str())).then_some(claims)
    }

    /// The encoded signature. Comparing encoded ones leaves no second spelling of a valid token.
    fn sign(&self, signed: &str) -> [u8; SIGNATURE] {
        let mut mac = self.keyed.clone();
        mac.update(signed.as_bytes());
        let mut encoded = [0; SIGNATURE];
        let written = URL_SAFE_NO_PAD.encode_slice(mac.finalize().into_bytes(), &mut encoded);
        debug_assert_eq!(written, Ok(SIGNATURE));
        encoded
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKey").finish_non_exhaustive()
    }
}

/// Signs `claims` under `secret`, the worker secret as text. [`TokenKey::mint`] does so for many.
#[must_use]
pub fn mint(secret: &str, claims: &Claims) -> String {
    TokenKey::new(secret).mint(claims)
}

/// Checks `token` under `secret`, as [`TokenKey::verify`] does for many.
#[must_use]
pub fn verify(secret: &str, audiences: &[&str], now: SystemTime, token: &str) -> Option<Claims> {
    TokenKey::new(secret).verify(audiences, now, token)
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

/// Whether an encoded header says the same as ours in other words: its members turned round, spaces, escapes.
fn is_the_header(encoded: &str) -> bool {
    let Ok(header) = URL_SAFE_NO_PAD.decode(encoded) else {
        return false;
    };
    serde_json::from_slice::<Value>(&header)
        .is_ok_and(|header| header == json!({"alg": "HS256", "typ": "pinboard+jwt"}))
}

/// The claims in a payload.
fn read_claims(payload: &[u8]) -> Option<Claims> {
    // Serde would take an array for a struct.
    if payload.first() == Some(&b'{')
        && let Ok(KnownClaims(claims)) = serde_json::from_slice(payload)
    {
        return Some(claims);
    }
    // Members that are not known are ignored, but what they say has to be JSON as well.
    let Value::Object(members) = serde_json::from_slice(payload).ok()? else {
        return None;
    };
    Claims::deserialize(Value::Object(members)).ok()
}

fn as_text(encoded: &[u8; SIGNATURE]) -> &str {
    std::str::from_utf8(encoded).expect("base64url is ASCII")
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
