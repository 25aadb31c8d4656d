//! What a token says.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// How long a fresh token is good for.
pub const LIFETIME: Duration = Duration::from_secs(30);

/// The claims of an attestation; members that are not named here are ignored.
///
/// The order of the fields is the order in a minted token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claims {
    /// For whom the token is: a session id, or the local audience of a host.
    pub aud: String,
    /// When it was minted, in Unix seconds.
    pub iat: i64,
    /// When it ends, in Unix seconds.
    pub exp: i64,
    /// The calling instance, `<ns>/<id>`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub caller: Option<String>,
    /// How many calls from instance to instance led here.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub depth: Option<u64>,
    /// The account that pinboard has verified.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "account"
    )]
    pub acct: Option<Account>,
    /// The calls that this one was made by, outermost first: each a [`Link`](crate::chain::Link) as text.
    ///
    /// Workers of other editions do not know this claim and drop it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub chain: Option<Vec<String>>,
}

/// Claims as every edition mints them, and nothing beside them: read at one go, without a map in between.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct KnownClaims(#[serde(with = "Known")] pub(super) Claims);

/// Their members; one that [`Claims`] has and this has not does not compile.
#[derive(Deserialize)]
#[serde(remote = "Claims", deny_unknown_fields)]
struct Known {
    aud: String,
    iat: i64,
    exp: i64,
    #[serde(default, deserialize_with = "present")]
    caller: Option<String>,
    #[serde(default, deserialize_with = "present")]
    depth: Option<u64>,
    #[serde(default, deserialize_with = "account")]
    acct: Option<Account>,
    #[serde(default, deserialize_with = "present")]
    chain: Option<Vec<String>>,
}

/// Someone from outside the fleet, as a passport provider knows them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Account {
    /// Who it is, unique within its provider.
    pub sub: String,
    /// What else the provider says of them.
    #[serde(default)]
    pub claims: Map<String, Value>,
    /// What they may do.
    #[serde(default)]
    pub scopes: BTreeSet<String>,
}

impl Claims {
    /// Claims of an anonymous caller, for `aud`, from `now` (whole seconds, rounded down) for [`LIFETIME`].
    #[must_use]
    pub fn new(aud: impl Into<String>, now: SystemTime) -> Self {
        let iat = unix_seconds(now);
        let exp = iat.saturating_add_unsigned(LIFETIME.as_secs());
        Self {
            aud: aud.into(),
            iat,
            exp,
            caller: None,
            depth: None,
            acct: None,
            chain: None,
        }
    }

    /// Whether they name nobody: a token of such claims is the same for all callers.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        let Self {
            aud: _,
            iat: _,
            exp: _,
            caller,
            depth,
            acct,
            chain,
        } = self;
        caller.is_none() && depth.is_none() && acct.is_none() && chain.is_none()
    }

    /// Names the calling instance, `<ns>/<id>`, and its depth in the chain of calls.
    #[must_use]
    pub fn with_caller(mut self, caller: impl Into<String>, depth: u64) -> Self {
        self.caller = Some(caller.into());
        self.depth = Some(depth);
        self
    }

    /// Names the account behind the request.
    #[must_use]
    pub fn with_account(mut self, account: Account) -> Self {
        self.acct = Some(account);
        self
    }

    /// Names the calls that this one was made by, outermost first.
    #[must_use]
    pub fn with_chain(mut self, chain: Vec<String>) -> Self {
        self.chain = Some(chain);
        self
    }
}

impl Account {
    /// An account with no claims and no scopes.
    #[must_use]
    pub fn new(sub: impl Into<String>) -> Self {
        Self {
            sub: sub.into(),
            ..Self::default()
        }
    }

    /// Sets what else the provider says.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        self.claims = claims;
        self
    }

    /// Sets what the account may do.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }
}

/// Reads a member that is there; unlike serde's own `Option`, `null` is not the same as absent (W8.4).
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads an account that is there and is an object; serde alone would take an array for a struct.
fn account<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Account>, D::Error> {
    let members = Map::deserialize(deserializer)?;
    Account::deserialize(Value::Object(members))
        .map(Some)
        .map_err(D::Error::custom)
}

/// Whole seconds since the Unix epoch, rounded down on both sides of it.
fn unix_seconds(at: SystemTime) -> i64 {
    let seconds = super::token::unix_nanos(at).div_euclid(super::token::NANOS);
    i64::try_from(seconds).unwrap_or(if seconds < 0 { i64::MIN } else { i64::MAX })
}
