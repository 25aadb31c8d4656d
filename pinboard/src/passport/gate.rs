//! The passport itself: whose a token is, and whether a request may reach a namespace.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ahash::RandomState;
use http::HeaderMap;
use pinned_domain::Domain;
use pinned_wire::attestation::Account;
use serde_json::json;

use super::credentials::Credentials;
use super::digest::TokenDigest;
use super::document::{self, PassportError};
use super::jwt::{Found, JwtProviders};
use super::rule::Rule;
use super::static_token::{self, InvalidToken, StaticTokens};
use super::{Admit, Admitted, Denied, Grants, OPERATOR_SCOPE, Principal, WORKER_SCOPE};
use crate::upstream::Fetcher;

/// The name of the key that a dev node has.
const DEV_KEY: &str = "dev";

/// The configured providers and the rules of the namespaces. Cheap to clone; clones are the same.
///
/// Without any (the default), nobody is known, and every namespace admits anyone.
#[derive(Clone, Default)]
pub struct Passport {
    parts: Arc<Parts>,
}

#[derive(Default)]
pub(super) struct Parts {
    pub(super) tokens: StaticTokens,
    pub(super) jwt: Option<JwtProviders>,
    pub(super) rules: HashMap<Box<str>, Rule, RandomState>,
}

/// What could be said of the tokens of a request without waiting.
enum Resolved {
    Now(Option<Vouched>),
    Later,
}

/// Someone whom a provider vouches for, and by which token.
struct Vouched {
    principal: Principal,
    by_authorization: bool,
}

impl Passport {
    /// Reads the JSON of `PINBOARD_PASSPORT`. `env` looks up the variables that tokens are taken from, and `fetcher` gets the
    /// keys of issuers, not before they are needed.
    ///
    /// # Errors
    ///
    /// The document is not one of these, or names a variable that is not set.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use pinboard::passport::Passport;
    /// # use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
    /// # use pinned_domain::Domain;
    /// # struct Nothing;
    /// # impl Fetcher for Nothing {
    /// #     fn fetch(&self, _: Fetch) -> futures_util::future::BoxFuture<'static, Result<Fetched, FetchError>> {
    /// #         unreachable!()
    /// #     }
    /// # }
    /// # let fetcher: Arc<dyn Fetcher> = Arc::new(Nothing);
    /// let json = r#"{"providers": [{"type": "staticToken", "id": "pinboard", "keys": [
    ///     {"name": "workers", "token": {"env": "PINBOARD_TOKEN"}, "scopes": ["pinboard:worker"]}]}]}"#;
    ///
    /// let error = Passport::parse(json, |_| None, &Domain::real(), &fetcher).expect_err("nothing is set");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "PINBOARD_PASSPORT is invalid: providers[0].keys[0].token.env: the variable PINBOARD_TOKEN is not set",
    /// );
    /// ```
    pub fn parse(
        json: &str,
        env: impl Fn(&str) -> Option<String>,
        domain: &Domain,
        fetcher: &Arc<dyn Fetcher>,
    ) -> Result<Self, PassportError> {
        let parts = document::read(json, &env, domain, fetcher)?;
        Ok(Self {
            parts: Arc::new(parts),
        })
    }

    /// The passport of a dev node (P1.4): one key with every scope and claim, and no rule for any namespace.
    ///
    /// # Errors
    ///
    /// The token could not be sent.
    pub fn dev(token: &str) -> Result<Self, InvalidToken> {
        static_token::check(token)?;
        let any = ["*"];
        let claims = json!({"pinboard": {
            "namespaces": any, "allowedBackendHosts": any, "hostnames": any, "envs": any,
        }});
        let serde_json::Value::Object(claims) = claims else {
            unreachable!("it is written as an object")
        };
        let account = Account::new(DEV_KEY)
            .with_scopes([WORKER_SCOPE, OPERATOR_SCOPE])
            .with_claims(claims);
        let key = Principal {
            account: Arc::new(account),
            grants: Arc::new(Grants::all()),
        };
        let mut tokens = StaticTokens::default();
        tokens.add(key, [TokenDigest::of(token)]);
        let parts = Parts {
            tokens,
            ..Parts::default()
        };
        Ok(Self {
            parts: Arc::new(parts),
        })
    }

    /// Begins to fetch the keys that are behind URLs, so that the first request need not wait for them. To be called in a runtime.
    pub fn warm_up(&self) {
        for provider in self.parts.jwt.iter().flat_map(JwtProviders::iter) {
            if let Some(keys) = provider.remote() {
                keys.begin();
            }
        }
    }

    /// Whom the `Authorization: Bearer` of a registry call belongs to.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Option<Principal> {
        let credentials = Credentials::of_call(headers);
        let vouched = match self.resolve(&credentials) {
            Resolved::Now(vouched) => vouched,
            Resolved::Later => self.resolve_later(&credentials).await,
        };
        vouched.map(|vouched| vouched.principal)
    }

    /// Whether a request may reach `ns`, and as whom. `upgrade` tells that it is going to be tunnelled as a WebSocket: only then may
    /// its token be a subprotocol.
    ///
    /// A request without a token, to a namespace without a rule, costs the look at its header and at the rules.
    pub fn admit<'a>(&'a self, ns: &str, headers: &'a HeaderMap, upgrade: bool) -> Admit<'a> {
        static ANYONE: Rule = Rule::Anyone;
        let credentials = Credentials::of_request(headers, upgrade);
        let rule = self.parts.rules.get(ns).unwrap_or(&ANYONE);
        match self.resolve(&credentials) {
            Resolved::Now(vouched) => Admit::ready(judge(rule, &credentials, vouched)),
            Resolved::Later => Admit::waiting(Box::pin(async move {
                let vouched = self.resolve_later(&credentials).await;
                judge(rule, &credentials, vouched)
            })),
        }
    }

    /// Whose the tokens of a request are: the header's first, then the subprotocol's.
    #[inline]
    fn resolve(&self, credentials: &Credentials<'_>) -> Resolved {
        let mut later = false;
        for (token, by_authorization) in candidates(credentials) {
            match self.find(token, &TokenDigest::of(token)) {
                Found::Now(Some(principal)) if !later => {
                    return Resolved::Now(Some(Vouched {
                        principal,
                        by_authorization,
                    }));
                }
                Found::Now(_) => {}
                Found::Later => later = true,
            }
        }
        if later {
            Resolved::Later
        } else {
            Resolved::Now(None)
        }
    }

    async fn resolve_later(&self, credentials: &Credentials<'_>) -> Option<Vouched> {
        for (token, by_authorization) in candidates(credentials) {
            let digest = TokenDigest::of(token);
            let principal = match (self.find(token, &digest), &self.parts.jwt) {
                (Found::Later, Some(jwt)) => jwt.find_later(token, &digest).await,
                (Found::Now(principal), _) => principal,
                (Found::Later, None) => None,
            };
            if let Some(principal) = principal {
                return Some(Vouched {
                    principal,
                    by_authorization,
                });
            }
        }
        None
    }

    fn find(&self, token: &str, digest: &TokenDigest) -> Found {
        match (self.parts.tokens.find(digest), &self.parts.jwt) {
            (Some(principal), _) => Found::Now(Some(principal.clone())),
            (None, Some(jwt)) => jwt.find(token, digest),
            (None, None) => Found::Now(None),
        }
    }
}

/// The tokens of a request in the order they are asked about, each with whether it is the `Authorization` header's.
fn candidates<'a>(
    credentials: &Credentials<'a>,
) -> impl Iterator<Item = (&'a str, bool)> + use<'a> {
    let header = credentials.header_token().map(|token| (token, true));
    let protocol = credentials.protocol_token().map(|token| (token, false));
    header.into_iter().chain(protocol)
}

fn judge(
    rule: &Rule,
    credentials: &Credentials<'_>,
    vouched: Option<Vouched>,
) -> Result<Admitted, Denied> {
    rule.check(vouched.as_ref().map(|vouched| &vouched.principal))?;
    Ok(Admitted {
        strip_authorization: !rule.admits_anyone()
            || vouched
                .as_ref()
                .is_some_and(|vouched| vouched.by_authorization),
        strip_bearer_subprotocol: credentials.has_protocol(),
        account: vouched.map(|vouched| vouched.principal.account),
    })
}

impl fmt::Debug for Passport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passport")
            .field("tokens", &self.parts.tokens)
            .field("jwt", &self.parts.jwt)
            .field("rules", &self.parts.rules)
            .finish()
    }
}
