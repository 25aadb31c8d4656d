//! Passports and requests.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use pinboard::passport::{Admitted, Denied, Passport, PassportError, Principal};
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
use pinned_domain::Domain;
use serde_json::Value;

/// A fetcher for passports that must not fetch.
struct Nothing;

impl Fetcher for Nothing {
    fn fetch(&self, fetch: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        panic!("nothing is fetched here, and {} was", fetch.url)
    }
}

/// What an issuer without a URL needs: nothing.
pub(super) fn no_fetcher() -> Arc<dyn Fetcher> {
    Arc::new(Nothing)
}

/// A passport that needs neither variables nor the network, under the real clock.
pub(super) fn passport(json: &Value) -> Result<Passport, PassportError> {
    passport_with_env(json, |_| None)
}

/// A passport under the real clock.
pub(super) fn passport_with_env(
    json: &Value,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Passport, PassportError> {
    Passport::parse(&json.to_string(), env, &Domain::real(), &no_fetcher())
}

pub(super) fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
    let value = |value: &str| HeaderValue::from_bytes(value.as_bytes()).expect("a header value");
    lines
        .iter()
        .map(|(name, line)| (name.clone(), value(line)))
        .collect()
}

pub(super) fn bearer(token: &str) -> HeaderMap {
    headers(&[(header::AUTHORIZATION, &format!("Bearer {token}"))])
}

/// Whom a bearer token belongs to.
pub(super) async fn who(passport: &Passport, token: &str) -> Option<Principal> {
    passport.authenticate(&bearer(token)).await
}

/// The `sub` behind a bearer token.
pub(super) async fn name(passport: &Passport, token: &str) -> Option<String> {
    let principal = who(passport, token).await?;
    Some(principal.account.sub.clone())
}

/// The answer to a request that is no upgrade and has to wait for nothing.
pub(super) fn admit(
    passport: &Passport,
    ns: &str,
    headers: &HeaderMap,
) -> Result<Admitted, Denied> {
    let answer = passport.admit(ns, headers, false).now();
    answer.expect("nothing has to be fetched")
}
