//! Calls from one instance to another, which a worker makes through the control plane (P5.8).

use http::{HeaderMap, HeaderName, HeaderValue};
use pinned_wire::attestation::{Claims, same_secret};
use pinned_wire::chain;
use pinned_wire::headers::{CHAIN, FROM, SESSION, SESSION_SECRET, SUBREQUEST_DEPTH};
use pinned_wire::ids::{invalid_id_reason, invalid_namespace_reason};

use crate::store::SessionId;

/// How deep a chain of calls may be.
const MOST_DEPTH: u64 = 50;

/// A call that says who makes it. Nothing of it has been checked.
pub(super) struct CallHeaders<'h> {
    session: &'h str,
    secret: &'h [u8],
    from: Option<&'h str>,
    depth: Result<u64, CallError>,
    chain: Result<Vec<&'h str>, CallError>,
}

/// Who makes a call, once that has been checked.
#[derive(Clone, Debug)]
pub(super) struct Call<'h> {
    from: &'h str,
    depth: u64,
    /// The calls that led to it, as its worker has them. Empty from a worker that does not tell.
    chain: Vec<&'h str>,
}

/// A call is not let through: 403.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// The session is unknown, or has another secret.
    Secret,
    /// The session does not hold the instance that is said to call.
    Placement,
    /// The chain of calls is too deep.
    Depth,
    /// How deep it is cannot be read.
    MalformedDepth,
    /// What led to it cannot be read, or is too long.
    MalformedChain,
}

impl CallError {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Secret => "invalid session secret",
            Self::Placement => "caller placement mismatch",
            Self::Depth => "calls between instances may be at most 50 deep",
            Self::MalformedDepth => "malformed subrequest depth",
            Self::MalformedChain => "malformed call chain",
        }
    }
}

impl<'h> CallHeaders<'h> {
    /// What a request says of a call; `None` when it is none: then these headers are a stranger's, and count for nothing.
    ///
    /// # Errors
    ///
    /// It says half of it.
    pub(super) fn read(headers: &'h HeaderMap) -> Result<Option<Self>, CallError> {
        if !headers.contains_key(SESSION) && !headers.contains_key(SESSION_SECRET) {
            return Ok(None);
        }
        let session = text(headers, &SESSION).ok_or(CallError::Secret)?;
        let secret = only(headers, &SESSION_SECRET).ok_or(CallError::Secret)?;
        Ok(Some(Self {
            session,
            secret: secret.as_bytes(),
            from: text(headers, &FROM),
            depth: depth(headers),
            chain: chain(headers),
        }))
    }

    /// The session that is said to call.
    pub(super) fn session(&self) -> SessionId {
        SessionId::new(self.session)
    }

    /// Whether the session that has `secret` makes the call.
    pub(super) fn is_from(&self, secret: &str) -> Result<(), CallError> {
        if same_secret(secret, self.secret) {
            Ok(())
        } else {
            Err(CallError::Secret)
        }
    }

    /// The namespace and the id of the instance that is said to call.
    pub(super) fn caller(&self) -> Result<(&'h str, &'h str), CallError> {
        self.from
            .and_then(|from| from.rsplit_once('/'))
            .filter(|(ns, id)| {
                invalid_namespace_reason(ns).is_none() && invalid_id_reason(id).is_none()
            })
            .ok_or(CallError::Placement)
    }

    /// The call, whose session holds its caller.
    pub(super) fn verified(self) -> Result<Call<'h>, CallError> {
        Ok(Call {
            from: self.from.ok_or(CallError::Placement)?,
            depth: self.depth?,
            chain: self.chain?,
        })
    }
}

impl Call<'_> {
    /// What the worker is told.
    pub(super) fn claims(&self, claims: Claims) -> Claims {
        let claims = claims.with_caller(self.from, self.depth);
        if self.chain.is_empty() {
            return claims;
        }
        claims.with_chain(self.chain.iter().map(|&link| link.to_owned()).collect())
    }
}

fn depth(headers: &HeaderMap) -> Result<u64, CallError> {
    let depth = text(headers, &SUBREQUEST_DEPTH).ok_or(CallError::MalformedDepth)?;
    // `parse` alone would take a sign.
    if depth.is_empty() || !depth.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(CallError::MalformedDepth);
    }
    match depth.parse() {
        Ok(depth) if depth <= MOST_DEPTH => Ok(depth),
        _ => Err(CallError::Depth),
    }
}

fn chain(headers: &HeaderMap) -> Result<Vec<&str>, CallError> {
    if !headers.contains_key(CHAIN) {
        return Ok(Vec::new());
    }
    text(headers, &CHAIN)
        .and_then(|chain| chain::read(chain).ok())
        .ok_or(CallError::MalformedChain)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    only(headers, name)?.to_str().ok()
}

fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?;
    values.next().is_none().then_some(value)
}
