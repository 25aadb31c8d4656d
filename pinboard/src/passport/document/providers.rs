//! The member `providers` (P7.2, P7.3).

use std::collections::HashSet;
use std::sync::Arc;

use pinned_domain::Domain;
use pinned_wire::attestation::Account;
use serde_json::Map;
use url::Url;

use super::{Fields, Malformed, Member};
use crate::passport::digest::TokenDigest;
use crate::passport::grants::Unknown;
use crate::passport::jwt::{JwtProvider, JwtProviderOptions, KeySet, Keys, RemoteKeys};
use crate::passport::static_token::{self, StaticTokens};
use crate::passport::{Grants, Principal};
use crate::upstream::Fetcher;

/// All providers of a document.
#[derive(Default)]
pub(super) struct Providers {
    pub(super) tokens: StaticTokens,
    pub(super) jwt: Vec<JwtProvider>,
}

/// What a document is read with.
pub(super) struct Surroundings<'a> {
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
    pub(super) domain: &'a Domain,
    pub(super) fetcher: &'a Arc<dyn Fetcher>,
}

impl Providers {
    pub(super) fn read(
        member: &Member<'_>,
        surroundings: &Surroundings<'_>,
    ) -> Result<Self, Malformed> {
        let mut providers = Self::default();
        let mut ids = HashSet::new();
        for provider in member.items()? {
            let fields = provider.any_object()?;
            let kind = fields.required("type")?;
            match kind.text()? {
                "staticToken" => {
                    provider.object(&["type", "id", "keys"])?;
                    unique(&fields.required("id")?, &mut ids)?;
                    providers.static_tokens(&fields.required("keys")?, surroundings)?;
                }
                "jwt" => {
                    provider.object(&[
                        "type",
                        "id",
                        "issuer",
                        "audience",
                        "jwks",
                        "scopesClaim",
                        "claimsClaim",
                    ])?;
                    let id = unique(&fields.required("id")?, &mut ids)?;
                    let options = issuer(id, &fields, surroundings)?;
                    providers
                        .jwt
                        .push(JwtProvider::new(options, surroundings.domain));
                }
                _ => return Err(kind.fail(r#""staticToken" or "jwt""#)),
            }
        }
        Ok(providers)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.jwt.is_empty()
    }

    fn static_tokens(
        &mut self,
        keys: &Member<'_>,
        surroundings: &Surroundings<'_>,
    ) -> Result<(), Malformed> {
        let mut names = HashSet::new();
        for key in keys.items()? {
            let fields = key.object(&["name", "token", "scopes", "claims"])?;
            let name = unique(&fields.required("name")?, &mut names)?;
            let scopes = match fields.optional("scopes") {
                Some(member) => scopes(&member)?,
                None => Vec::new(),
            };
            let (claims, grants) = match fields.optional("claims") {
                Some(member) => {
                    let claims = member.any_object()?.members();
                    let grants = Grants::read(claims, member.path(), Unknown::Refused)?;
                    (claims.clone(), grants)
                }
                None => (Map::new(), Grants::default()),
            };
            let tokens = self.tokens_of_key(&fields.required("token")?, surroundings)?;
            let account = Account::new(name).with_scopes(scopes).with_claims(claims);
            let principal = Principal {
                account: Arc::new(account),
                grants: Arc::new(grants),
            };
            self.tokens.add(principal, tokens);
        }
        Ok(())
    }

    /// The tokens of one key: one, or a list of them while one takes the place of another.
    fn tokens_of_key(
        &self,
        member: &Member<'_>,
        surroundings: &Surroundings<'_>,
    ) -> Result<HashSet<TokenDigest>, Malformed> {
        let members = match member.value().as_array() {
            Some(items) if items.is_empty() => return Err(member.fail("at least one token")),
            Some(_) => member.items()?,
            None => vec![Member::new(member.path(), member.value())],
        };
        members
            .iter()
            .map(|member| {
                let digest = token(member, surroundings)?;
                match self.tokens.holder(&digest) {
                    Some(holder) => {
                        Err(member
                            .refuse(format_args!("the same token as that of the key {holder:?}")))
                    }
                    None => Ok(digest),
                }
            })
            .collect()
    }
}

/// A name that none before it has.
fn unique<'a>(member: &Member<'a>, names: &mut HashSet<&'a str>) -> Result<&'a str, Malformed> {
    let name = member.text()?;
    match names.insert(name) {
        true => Ok(name),
        false => Err(member.refuse(format_args!("another one is called {name:?} too"))),
    }
}

fn scopes(member: &Member<'_>) -> Result<Vec<String>, Malformed> {
    member
        .items()?
        .iter()
        .map(|scope| match scope.text()? {
            text if text.contains(char::is_whitespace) => {
                Err(scope.fail("one scope, without spaces"))
            }
            text => Ok(text.to_owned()),
        })
        .collect()
}

/// One token, written out or in a variable.
fn token(member: &Member<'_>, surroundings: &Surroundings<'_>) -> Result<TokenDigest, Malformed> {
    let digest = |token: &str, member: &Member<'_>, of: &str| match static_token::check(token) {
        Ok(()) => Ok(TokenDigest::of(token)),
        Err(error) => Err(member.refuse(format_args!("{of}{error}"))),
    };
    if let Some(token) = member.value().as_str() {
        return digest(token, member, "");
    }
    if !member.value().is_object() {
        return Err(member.fail(r#"a token, {"env": NAME}, or an array of these"#));
    }
    let env = member.object(&["env"])?.required("env")?;
    let name = env.text()?;
    // What is no name may be the token itself, put into the wrong place: it is not shown.
    let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return Err(env.fail("the name of an environment variable"));
    }
    match (surroundings.env)(name) {
        Some(token) => digest(
            &token,
            &env,
            &format!("the variable {name} holds no token: "),
        ),
        None => Err(env.refuse(format_args!("the variable {name} is not set"))),
    }
}

// --- Issuers -----------------------------------------------------------------------------------------------------------------------

fn issuer(
    id: &str,
    fields: &Fields<'_>,
    surroundings: &Surroundings<'_>,
) -> Result<JwtProviderOptions, Malformed> {
    let text = |name: &str| {
        fields
            .optional(name)
            .map(|member| member.text())
            .transpose()
    };
    Ok(JwtProviderOptions {
        id: id.into(),
        issuer: fields.required("issuer")?.text()?.into(),
        audiences: fields
            .required("audience")?
            .texts()?
            .into_iter()
            .map(Into::into)
            .collect(),
        keys: keys(id, &fields.required("jwks")?, surroundings)?,
        scopes_claim: text("scopesClaim")?.unwrap_or("scope").into(),
        claims_claim: text("claimsClaim")?.map(Into::into),
    })
}

/// The keys of an issuer: a key set (`{"keys": [..]}`, also as `{"inline": {"keys": [..]}}`), or `{"url": ".."}`.
fn keys(id: &str, member: &Member<'_>, surroundings: &Surroundings<'_>) -> Result<Keys, Malformed> {
    let fields = member.object(&["keys", "url", "inline"])?;
    let [set, url, inline] = ["keys", "url", "inline"].map(|name| fields.optional(name));
    match (set, url, inline) {
        (Some(_), None, None) => key_set(member),
        (None, Some(url), None) => remote(id, &url, surroundings),
        (None, None, Some(set)) => key_set(&set),
        _ => Err(member.fail(r#"either a key set ({"keys": [..]}) or {"url": ".."}"#)),
    }
}

fn key_set(member: &Member<'_>) -> Result<Keys, Malformed> {
    let keys = member.object(&["keys"])?.required("keys")?;
    let (set, unusable) = KeySet::read(member.value()).map_err(|error| member.fail(error))?;
    if let Some(key) = unusable.first() {
        return Err(keys.items()?[key.index].fail(key.expected));
    }
    if set.is_empty() {
        return Err(keys.fail("at least one key"));
    }
    Ok(Keys::Inline(set))
}

fn remote(
    id: &str,
    member: &Member<'_>,
    surroundings: &Surroundings<'_>,
) -> Result<Keys, Malformed> {
    let expected = || member.fail("an http or https URL, without a user and a fragment");
    let url = Url::parse(member.text()?).map_err(|_| expected())?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    if !is_plain {
        return Err(expected());
    }
    if url.scheme() == "http" {
        tracing::warn!(
            provider = id,
            "the keys of an issuer come over http: whoever is between can sign as it"
        );
    }
    Ok(Keys::Remote(RemoteKeys::new(
        id,
        url,
        surroundings.domain,
        surroundings.fetcher,
    )))
}
