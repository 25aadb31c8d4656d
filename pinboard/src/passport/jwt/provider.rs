//! One issuer of tokens.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pinned_domain::Domain;
use pinned_wire::attestation::Account;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::compact::Compact;
use super::key_set::KeySet;
use super::remote::RemoteKeys;
use crate::passport::due::Due;
use crate::passport::grants::Unknown;
use crate::passport::{Grants, Principal};

/// How far the clocks of an issuer and of this node may differ.
const LEEWAY: f64 = 30.0;
/// How often a mistake in what an issuer signs is told.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// What a token says of itself (RFC 7519, 4.1), rather than of whom it is for.
const REGISTERED: [&str; 7] = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti"];

/// One issuer of tokens.
#[derive(Debug)]
pub(in crate::passport) struct JwtProvider {
    options: JwtProviderOptions,
    complaint: Due,
}

/// What an issuer's tokens look like.
#[derive(Debug)]
pub(in crate::passport) struct JwtProviderOptions {
    /// The provider's id.
    pub(in crate::passport) id: Box<str>,
    /// What `iss` must be.
    pub(in crate::passport) issuer: Box<str>,
    /// One of these must be in `aud`.
    pub(in crate::passport) audiences: Vec<Box<str>>,
    /// What its tokens are signed with.
    pub(in crate::passport) keys: Keys,
    /// The claim with the scopes: an array, or a string with spaces between.
    pub(in crate::passport) scopes_claim: Box<str>,
    /// The claim that becomes the claims of the account; without one, all claims do that are not about the token.
    pub(in crate::passport) claims_claim: Option<Box<str>>,
}

/// Where the keys of an issuer are from.
#[derive(Debug)]
pub(in crate::passport) enum Keys {
    /// The configuration.
    Inline(KeySet),
    /// A URL.
    Remote(RemoteKeys),
}

/// What a provider makes of a token.
pub(super) enum Verdict {
    /// It vouches for someone.
    Vouched(Vouched),
    /// It is none of its tokens, or not a good one.
    Refused,
    /// It could be a token of its, by a key that it would have to fetch first.
    UnknownKey,
}

/// Someone whom a token vouches for.
#[derive(Clone, Debug)]
pub(super) struct Vouched {
    pub(super) principal: Principal,
    /// The generation of the keys that it was signed with.
    pub(super) generation: u64,
    pub(super) validity: Validity,
}

/// When a token is good, in Unix seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validity {
    expires: f64,
    not_before: Option<f64>,
}

impl JwtProvider {
    pub(in crate::passport) fn new(options: JwtProviderOptions, domain: &Domain) -> Self {
        Self {
            options,
            complaint: Due::now(domain),
        }
    }

    /// The keys, when they are from a URL.
    pub(in crate::passport) fn remote(&self) -> Option<&RemoteKeys> {
        match &self.options.keys {
            Keys::Inline(_) => None,
            Keys::Remote(keys) => Some(keys),
        }
    }

    /// The generation of its keys, with which the tokens they vouch for come and go.
    pub(super) fn generation(&self) -> u64 {
        self.remote().map_or(0, RemoteKeys::generation)
    }

    /// What it makes of a token, with the keys that it has. What costs least is looked at first; a key is looked for only when
    /// everything else is right, so that nobody's tokens but the issuer's make it fetch.
    pub(super) fn verify(&self, token: &Compact<'_>, now: Instant, wall: SystemTime) -> Verdict {
        let claims = &token.claims;
        let options = &self.options;
        if claims.get("iss").and_then(Value::as_str) != Some(&options.issuer)
            || !is_for(claims.get("aud"), &options.audiences)
        {
            return Verdict::Refused;
        }
        let Some(validity) = Validity::read(claims).filter(|validity| validity.holds(wall)) else {
            return Verdict::Refused;
        };
        let verified = |keys: &KeySet| {
            let key = keys.select(token.header.kid.as_deref())?;
            Some(key.verifies(token.header.alg, token.signed, token.signature))
        };
        let (generation, verified) = match &options.keys {
            Keys::Inline(keys) => (0, verified(keys).unwrap_or(false)),
            Keys::Remote(remote) => {
                remote.keep_fresh(now);
                let (generation, keys) = remote.current();
                match verified(&keys) {
                    Some(verified) => (generation, verified),
                    // Which of several keys is meant is not learnt from another set.
                    None if token.header.kid.is_none() && !keys.is_empty() => (generation, false),
                    None => return Verdict::UnknownKey,
                }
            }
        };
        if !verified {
            return Verdict::Refused;
        }
        match self.principal(claims, now) {
            Some(principal) => Verdict::Vouched(Vouched {
                principal,
                generation,
                validity,
            }),
            None => Verdict::Refused,
        }
    }

    /// Who it is, by the claims of a token that is signed; `None` when they do not say.
    fn principal(&self, claims: &Map<String, Value>, now: Instant) -> Option<Principal> {
        let options = &self.options;
        let sub = match claims.get("sub") {
            Some(Value::String(sub)) if !sub.is_empty() => sub,
            _ => return self.refuse(now, "`sub` is not a string, or empty"),
        };
        let Some(scopes) = scopes(claims.get(&*options.scopes_claim)) else {
            return self.refuse(
                now,
                "the scopes are neither a string nor an array of strings",
            );
        };
        let claims = match &options.claims_claim {
            None => self.claims_about_the_account(claims),
            Some(name) => match claims.get(&**name) {
                None => Map::new(),
                Some(Value::Object(claims)) => claims.clone(),
                Some(_) => return self.refuse(now, "the claims are not an object"),
            },
        };
        let grants = Grants::read(&claims, "claims", Unknown::Ignored).unwrap_or_else(|error| {
            if self.complaint.take(now, COMPLAINT_INTERVAL) {
                tracing::warn!(
                    provider = %options.id,
                    error = %error,
                    "a token grants nothing, because what it grants is malformed"
                );
            }
            Grants::default()
        });
        let account = Account::new(sub).with_scopes(scopes).with_claims(claims);
        Some(Principal {
            account: Arc::new(account),
            grants: Arc::new(grants),
        })
    }

    fn claims_about_the_account(&self, claims: &Map<String, Value>) -> Map<String, Value> {
        claims
            .iter()
            .filter(|(name, _)| {
                !REGISTERED.contains(&name.as_str()) && ***name != *self.options.scopes_claim
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn refuse(&self, now: Instant, reason: &'static str) -> Option<Principal> {
        if self.complaint.take(now, COMPLAINT_INTERVAL) {
            tracing::warn!(provider = %self.options.id, reason, "a token of an issuer is refused");
        }
        None
    }
}

impl Validity {
    /// When a token is good; `None` when it does not say until when, or says it wrongly.
    fn read(claims: &Map<String, Value>) -> Option<Self> {
        let expires = claims.get("exp")?.as_f64()?;
        let not_before = match claims.get("nbf") {
            None => None,
            Some(value) => Some(value.as_f64()?),
        };
        Some(Self {
            expires,
            not_before,
        })
    }

    /// Whether it is good now, with the leeway on both sides.
    pub(super) fn holds(&self, wall: SystemTime) -> bool {
        let now = unix_seconds(wall);
        now < self.expires + LEEWAY && self.not_before.is_none_or(|from| now >= from - LEEWAY)
    }
}

fn unix_seconds(at: SystemTime) -> f64 {
    match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => after.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64(),
    }
}

/// Whether one of `audiences` is among those that a token is for, which are one string or an array of strings.
fn is_for(aud: Option<&Value>, audiences: &[Box<str>]) -> bool {
    let is_ours = |name: &str| audiences.iter().any(|audience| **audience == *name);
    match aud {
        Some(Value::String(name)) => is_ours(name),
        Some(Value::Array(names)) => {
            names.iter().all(Value::is_string)
                && names.iter().filter_map(Value::as_str).any(is_ours)
        }
        _ => false,
    }
}

/// The scopes, none when the claim is missing; `None` when they are of the wrong type.
fn scopes(claim: Option<&Value>) -> Option<BTreeSet<String>> {
    match claim {
        None => Some(BTreeSet::new()),
        Some(Value::String(scopes)) => {
            Some(scopes.split_ascii_whitespace().map(str::to_owned).collect())
        }
        Some(Value::Array(scopes)) => scopes
            .iter()
            .map(|scope| scope.as_str().map(str::to_owned))
            .collect(),
        Some(_) => None,
    }
}
