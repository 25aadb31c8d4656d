//! Issuers that sign whatever they are told to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};

pub(super) const ISSUER: &str = "https://issuer.example";
pub(super) const AUDIENCE: &str = "pinboard";
/// The wall time at which simulations start.
pub(super) const START: u64 = 1_800_000_000;

/// A key to sign with.
pub(super) struct SigningKey {
    pub(super) kid: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
}

pub(super) fn rsa() -> SigningKey {
    rsa_of("rsa", include_bytes!("keys/rsa_a.der"))
}

pub(super) fn other_rsa() -> SigningKey {
    rsa_of("rsa-2", include_bytes!("keys/rsa_b.der"))
}

pub(super) fn small_rsa() -> SigningKey {
    rsa_of("small", include_bytes!("keys/rsa_small.der"))
}

pub(super) fn ec() -> SigningKey {
    SigningKey {
        kid: "ec",
        algorithm: Algorithm::ES256,
        key: EncodingKey::from_ec_der(include_bytes!("keys/ec_a.der")),
    }
}

pub(super) fn other_ec() -> SigningKey {
    SigningKey {
        kid: "ec-2",
        algorithm: Algorithm::ES256,
        key: EncodingKey::from_ec_der(include_bytes!("keys/ec_b.der")),
    }
}

pub(super) fn ed() -> SigningKey {
    SigningKey {
        kid: "ed",
        algorithm: Algorithm::EdDSA,
        key: EncodingKey::from_ed_der(include_bytes!("keys/ed_a.der")),
    }
}

pub(super) fn other_ed() -> SigningKey {
    SigningKey {
        kid: "ed-2",
        algorithm: Algorithm::EdDSA,
        key: EncodingKey::from_ed_der(include_bytes!("keys/ed_b.der")),
    }
}

fn rsa_of(kid: &'static str, der: &[u8]) -> SigningKey {
    SigningKey {
        kid,
        algorithm: Algorithm::RS256,
        key: EncodingKey::from_rsa_der(der),
    }
}

impl SigningKey {
    pub(super) fn with_kid(mut self, kid: &'static str) -> Self {
        self.kid = kid;
        self
    }

    /// The public half, as a key set has it.
    pub(super) fn jwk(&self) -> Value {
        let jwk = Jwk::from_encoding_key(&self.key, self.algorithm).expect("a key of ours");
        with(&json!(jwk), "kid", json!(self.kid))
    }

    pub(super) fn header(&self) -> Value {
        json!({"alg": self.algorithm, "typ": "JWT", "kid": self.kid})
    }

    /// A token with this key's header.
    pub(super) fn sign(&self, claims: &Value) -> String {
        self.sign_as(&self.header(), claims)
    }

    /// A token with any header, signed with this key in its own algorithm.
    pub(super) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    pub(super) fn sign_text(&self, header: &str, claims: &str) -> String {
        let signed = unsigned(header, claims);
        let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &self.key, self.algorithm);
        format!("{signed}.{}", signature.expect("a key of ours"))
    }
}

/// The first two parts of a token.
pub(super) fn unsigned(header: &str, claims: &str) -> String {
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
    format!("{header}.{claims}")
}

/// What a good token says at the start of a simulation, for an hour.
pub(super) fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": START + 3600})
}

/// `object` with one member put in, or replaced.
pub(super) fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}

/// `object` without one of its members.
pub(super) fn without(object: &Value, name: &str) -> Value {
    let mut object = object.clone();
    object.as_object_mut().expect("an object").remove(name);
    object
}

/// The provider of this issuer.
pub(super) fn provider(jwks: Value) -> Value {
    json!({"type": "jwt", "id": "issuer", "issuer": ISSUER, "audience": AUDIENCE, "jwks": jwks})
}

/// A passport with this provider alone.
pub(super) fn document(provider: Value) -> Value {
    json!({"providers": [provider]})
}

pub(super) fn key_set(keys: &[SigningKey]) -> Value {
    json!({"keys": keys.iter().map(SigningKey::jwk).collect::<Vec<_>>()})
}
