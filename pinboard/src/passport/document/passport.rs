//! The whole document.

use std::sync::Arc;

use pinned_domain::Domain;

use super::providers::{Providers, Surroundings};
use super::{Malformed, Member, PassportError, namespaces, strict};
use crate::passport::gate::Parts;
use crate::passport::jwt::JwtProviders;
use crate::upstream::Fetcher;

/// Reads the JSON of `PINBOARD_PASSPORT`.
pub(in crate::passport) fn read(
    json: &str,
    env: &dyn Fn(&str) -> Option<String>,
    domain: &Domain,
    fetcher: &Arc<dyn Fetcher>,
) -> Result<Parts, PassportError> {
    let value = strict::from_slice(json.as_bytes()).map_err(|error| {
        PassportError(Malformed {
            path: String::new(),
            expected: format!("expected JSON: {error}"),
        })
    })?;
    let surroundings = Surroundings {
        env,
        domain,
        fetcher,
    };
    parts(&Member::new("", &value), &surroundings).map_err(PassportError)
}

fn parts(document: &Member<'_>, surroundings: &Surroundings<'_>) -> Result<Parts, Malformed> {
    let fields = document.object(&["providers", "namespaces"])?;
    let providers = Providers::read(&fields.required("providers")?, surroundings)?;
    let rules = match fields.optional("namespaces") {
        Some(member) => namespaces::read(&member)?,
        None => Default::default(),
    };
    if providers.is_empty() {
        tracing::warn!("PINBOARD_PASSPORT has no key and no issuer: no worker can register");
    }
    let jwt =
        (!providers.jwt.is_empty()).then(|| JwtProviders::new(providers.jwt, surroundings.domain));
    Ok(Parts {
        tokens: providers.tokens,
        jwt,
        rules,
    })
}
