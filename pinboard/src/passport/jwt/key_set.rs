//! The keys of an issuer.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

/// The most keys that a set may have.
pub(in crate::passport) const MAX_KEYS: usize = 64;

/// The sizes of RSA keys that are used, in bits: smaller ones can be broken, larger ones keep a thread busy.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The keys of an issuer that can be used, each with the one algorithm it is for.
#[derive(Debug, Default)]
pub(in crate::passport) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug)]
pub(super) struct Key {
    id: Option<Box<str>>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// The document is no key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::passport) enum InvalidKeySet {
    #[error("an object with an array `keys`")]
    Shape,
    #[error("at most {MAX_KEYS} keys")]
    TooMany,
}

/// A key that is not used, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::passport) struct Unusable {
    /// Its index among the keys.
    pub(in crate::passport) index: usize,
    /// What was expected instead.
    pub(in crate::passport) expected: &'static str,
}

impl KeySet {
    /// Reads a JWK set (RFC 7517, 5). Keys that cannot be used are left out and told.
    pub(in crate::passport) fn read(set: &Value) -> Result<(Self, Vec<Unusable>), InvalidKeySet> {
        let Some(Value::Array(values)) = set.get("keys") else {
            return Err(InvalidKeySet::Shape);
        };
        if values.len() > MAX_KEYS {
            return Err(InvalidKeySet::TooMany);
        }
        let (mut keys, mut unusable) = (Vec::new(), Vec::new());
        for (index, value) in values.iter().enumerate() {
            match Key::read(value) {
                Ok(key) => keys.push((index, key)),
                Err(expected) => unusable.push(Unusable { index, expected }),
            }
        }
        // Two keys of one id: which one is meant would be a guess, so neither is.
        let ids: Vec<_> = keys.iter().map(|(_, key)| key.id.clone()).collect();
        let is_ambiguous = |key: &Key| ids.iter().filter(|id| **id == key.id).count() > 1;
        let (ambiguous, keys): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|(_, key)| is_ambiguous(key));
        unusable.extend(ambiguous.into_iter().map(|(index, key)| Unusable {
            index,
            expected: match key.id {
                Some(_) => "a `kid` that no other key of the set has",
                None => "a `kid`, since other keys of the set have none either",
            },
        }));
        unusable.sort_unstable_by_key(|key| key.index);
        let keys = keys.into_iter().map(|(_, key)| key).collect();
        Ok((Self { keys }, unusable))
    }

    /// Whether no key can be used.
    pub(in crate::passport) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys can be used.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The key that a token names. A token that names none means the only one.
    pub(super) fn select(&self, id: Option<&str>) -> Option<&Key> {
        match (id, self.keys.as_slice()) {
            (Some(_), keys) => keys.iter().find(|key| key.id.as_deref() == id),
            (None, [key]) => Some(key),
            (None, _) => None,
        }
    }
}

impl Key {
    /// Whether `signature` is this key's, over `signed`, in the algorithm that the key is for. What the token calls its algorithm has
    /// to be the same, and decides nothing.
    pub(super) fn verifies(&self, claimed: Algorithm, signed: &str, signature: &str) -> bool {
        claimed == self.algorithm
            && jsonwebtoken::crypto::verify(signature, signed.as_bytes(), &self.key, self.algorithm)
                .unwrap_or(false)
    }

    fn read(value: &Value) -> Result<Self, &'static str> {
        let Value::Object(members) = value else {
            return Err("an object");
        };
        if ["d", "p", "q", "k"]
            .iter()
            .any(|name| members.contains_key(*name))
        {
            return Err("the public part of a key; this one has its private part beside it");
        }
        let id = match members.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.as_str().into()),
            Some(_) => return Err("a `kid` that is a string"),
        };
        if members.get("use").is_some_and(|purpose| purpose != "sig") {
            return Err("a key for signatures (`use`: `sig`)");
        }
        let verifies = |operations: &Value| match operations {
            Value::Array(operations) => operations.iter().any(|operation| operation == "verify"),
            _ => false,
        };
        if !members.get("key_ops").is_none_or(verifies) {
            return Err("a key to verify with (`verify` among its `key_ops`)");
        }
        let (algorithm, key) = public_key(members)?;
        // The algorithm follows from the kind of key; what the set calls it must agree.
        if members
            .get("alg")
            .is_some_and(|name| name.as_str() != Some(name_of(algorithm)))
        {
            return Err("an `alg` of RS256, ES256 or EdDSA that is for this kind of key");
        }
        // Points that are not on their curve come out here, rather than with every token.
        if jsonwebtoken::crypto::verify("", b"", &key, algorithm).is_err() {
            return Err("a valid public key");
        }
        Ok(Self { id, algorithm, key })
    }
}

fn name_of(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::RS256 => "RS256",
        Algorithm::ES256 => "ES256",
        _ => "EdDSA",
    }
}

/// The key itself. All lengths are checked, because those below do not check them all.
fn public_key(members: &Map<String, Value>) -> Result<(Algorithm, DecodingKey), &'static str> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let coordinate = |name: &str| {
        text(name).filter(|text| {
            URL_SAFE_NO_PAD
                .decode(text)
                .is_ok_and(|bytes| bytes.len() == 32)
        })
    };
    match (text("kty"), text("crv")) {
        (Some("RSA"), _) => {
            let number = |name| URL_SAFE_NO_PAD.decode(text(name)?).ok();
            let (Some(modulus), Some(exponent)) = (number("n"), number("e")) else {
                return Err("an RSA key with `n` and `e`, in base64url without padding");
            };
            if !RSA_BITS.contains(&bits(&modulus)) {
                return Err("an RSA key of 2048 to 8192 bits");
            }
            let is_odd = |number: &[u8]| number.last().is_some_and(|byte| byte % 2 == 1);
            if !is_odd(&modulus) || !is_odd(&exponent) || !(2..=33).contains(&bits(&exponent)) {
                return Err("a valid public key");
            }
            let key = DecodingKey::from_rsa_raw_components(&modulus, &exponent);
            Ok((Algorithm::RS256, key))
        }
        (Some("EC"), Some("P-256")) => {
            let (Some(x), Some(y)) = (coordinate("x"), coordinate("y")) else {
                return Err(
                    "a P-256 key with `x` and `y` of 32 bytes, in base64url without padding",
                );
            };
            let key = DecodingKey::from_ec_components(x, y).map_err(|_| "a valid public key")?;
            Ok((Algorithm::ES256, key))
        }
        (Some("OKP"), Some("Ed25519")) => {
            let Some(x) = coordinate("x") else {
                return Err("an Ed25519 key with `x` of 32 bytes, in base64url without padding");
            };
            let key = DecodingKey::from_ed_components(x).map_err(|_| "a valid public key")?;
            Ok((Algorithm::EdDSA, key))
        }
        _ => Err("a key of kind RSA, EC on P-256, or OKP on Ed25519"),
    }
}

/// The length of a number in bits, however many zeros are before it.
fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    match &number[zeros..] {
        [] => 0,
        [first, rest @ ..] => 8 * rest.len() + (8 - first.leading_zeros() as usize),
    }
}
