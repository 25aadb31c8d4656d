//! The proof that an advertised URL is the worker's own (P2.3).

use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use pinned_wire::headers::PROXY_SECRET;
use pinned_wire::registry::Secret;
use serde::Deserialize;

use super::bodies::Challenge;
use super::{AdvertisedUrl, Registry};
use crate::passport::{BackendHostError, Grants, Resolve, allowed_addresses};
use crate::upstream::{Fetch, FetchError, Fetched};

/// The longest answer to a challenge, in bytes.
const LONGEST_ANSWER: usize = 16 << 10;

/// What came of asking a worker's URL.
#[derive(Debug)]
pub(crate) enum Proof {
    /// It answered for this worker, at these addresses.
    Held(Vec<SocketAddr>),
    /// It leads to an address that the claims do not cover: it was not asked.
    NotAllowed(BackendHostError),
    /// Somebody else answered, or the worker in a way that proves nothing.
    Elsewhere(&'static str),
    /// Nobody answered, or only that it cannot.
    Unreachable(&'static str),
}

/// Asks `url`, within `limit` from resolving its host to the last byte of the answer. Only addresses that `grants` allow
/// are dialled, and those that have been looked at: nobody is asked for them again.
///
/// # Cancel safety
///
/// Nothing is changed.
pub(crate) async fn prove(
    registry: &Registry,
    resolver: &dyn Resolve,
    grants: &Grants,
    url: &AdvertisedUrl,
    secret: &Secret,
    challenge: &Challenge,
    limit: Duration,
) -> Proof {
    let proof = async {
        let allowed = allowed_addresses(url.url(), grants, resolver, &registry.domain);
        let addresses = match allowed.await {
            Ok(addresses) => addresses,
            Err(BackendHostError::Unresolvable { .. }) => {
                return Proof::Unreachable("its host is not known");
            }
            Err(error) => return Proof::NotAllowed(error),
        };
        let Some(fetch) = fetch(url, &addresses, secret, challenge, limit) else {
            return Proof::Elsewhere("its secret cannot be sent");
        };
        match judge(registry.fetcher.fetch(fetch).await, &challenge.expect) {
            Ok(()) => Proof::Held(addresses),
            Err(proof) => proof,
        }
    };
    match registry.domain.timeout(limit, proof).await {
        Ok(proof) => proof,
        Err(_) => Proof::Unreachable("it did not answer in time"),
    }
}

fn fetch(
    url: &AdvertisedUrl,
    addresses: &[SocketAddr],
    secret: &Secret,
    challenge: &Challenge,
    limit: Duration,
) -> Option<Fetch> {
    let mut fetch = Fetch::get(url.challenge(&challenge.ask));
    fetch.addresses = Some(addresses.to_vec());
    fetch.headers.insert(PROXY_SECRET, secret_header(secret)?);
    fetch.timeout = limit;
    fetch.limit = LONGEST_ANSWER;
    Some(fetch)
}

/// A worker's secret as a header that no `Debug` shows; checked to fit into one when the worker registered.
pub(crate) fn secret_header(secret: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[derive(Deserialize)]
struct Answer {
    value: Secret,
}

fn judge(answer: Result<Fetched, FetchError>, expect: &Secret) -> Result<(), Proof> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(FetchError::TooLong(_)) => {
            return Err(Proof::Elsewhere("it answered at too great a length"));
        }
        Err(FetchError::Connect(_)) => {
            return Err(Proof::Unreachable("no connection could be made"));
        }
        Err(FetchError::Timeout(_)) => return Err(Proof::Unreachable("it did not answer in time")),
        Err(_) => return Err(Proof::Unreachable("no valid answer came")),
    };
    if answer.status.is_server_error() {
        return Err(Proof::Unreachable("it answered with a server error"));
    }
    if answer.status.is_redirection() {
        return Err(Proof::Elsewhere("it redirected, and is not followed"));
    }
    if answer.status != StatusCode::OK {
        return Err(Proof::Elsewhere("it does not know the challenge"));
    }
    match serde_json::from_slice::<Answer>(&answer.body) {
        Ok(given) if expect.is(given.value.expose().as_bytes()) => Ok(()),
        _ => Err(Proof::Elsewhere("it answered something else")),
    }
}
