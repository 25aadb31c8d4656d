//! What the head of a request says before anything is known of its instance: where it goes, and who sends it.

use std::ops::Range;

use http::{HeaderMap, Request};
use pinned_wire::attestation::Claims;

use super::core::Host;
use crate::Attestation;
use crate::api::chain::Origin;
use crate::api::headers::find;
use crate::api::refusal::Refusal;
use crate::api::request::RequestBody;

/// Where in a request's path the id and what follows it stand.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) id: Range<usize>,
    /// Empty, or from a slash on.
    pub(crate) rest: Range<usize>,
}

/// Who makes a request.
pub(crate) enum Sender {
    /// Somebody outside; the headers say who vouches for them.
    Outside,
    /// An instance of this process: nobody can forge that, so nothing is signed (W14.5).
    Inside {
        attestation: Attestation,
        origin: Origin,
    },
}

/// A request whose sender is known.
pub(super) struct Identified {
    pub(super) request: Request<RequestBody>,
    pub(super) attestation: Attestation,
    pub(super) origin: Origin,
}

impl Host {
    /// Who calls, and how deep in a chain (H2.1, W8.6, W14.3).
    pub(super) fn identify(
        &self,
        headers: &HeaderMap,
        sender: Sender,
    ) -> Result<(Attestation, Origin), Refusal> {
        match sender {
            Sender::Inside {
                attestation,
                origin,
            } => Ok((attestation, origin)),
            Sender::Outside => {
                let Some(mut claims) = self.verify(headers) else {
                    if self.env.is_placed() {
                        return Err(Refusal::Unattested);
                    }
                    return Ok((Attestation::Anonymous, Origin::default()));
                };
                let chain = claims.chain.take().unwrap_or_default();
                let attestation = Attestation::from(claims);
                let origin = match &attestation {
                    Attestation::Instance { depth, .. } => {
                        let depth = u32::try_from(*depth).unwrap_or(u32::MAX);
                        Origin::outside(depth, &chain, &self.env.calls)
                    }
                    _ => Origin::default(),
                };
                Ok((attestation, origin))
            }
        }
    }

    fn verify(&self, headers: &HeaderMap) -> Option<Claims> {
        let token = find(headers, &pinned_wire::headers::ATTESTATION)?
            .to_str()
            .ok()?;
        let session = self
            .env
            .placements
            .as_ref()
            .and_then(|placements| placements.session_audience());
        match &session {
            Some(session) => self.env.verify(&[session, &self.audience], token),
            None => self.env.verify(&[&self.audience], token),
        }
    }
}

pub(super) fn valid_id(segment: &str) -> Result<std::borrow::Cow<'_, str>, Refusal> {
    // Almost always: nothing is encoded, for no id has a percent sign.
    if pinned_wire::ids::invalid_id_reason(segment).is_none() {
        return Ok(std::borrow::Cow::Borrowed(segment));
    }
    let id = pinned_wire::ids::decode_id(segment)
        .map_err(|_| Refusal::InvalidId("id must contain only [A-Za-z0-9._~-]"))?;
    match pinned_wire::ids::invalid_id_reason(&id) {
        None => Ok(id),
        Some(reason) => Err(Refusal::InvalidId(reason)),
    }
}

pub(super) fn has_encoded_slash(segment: &str) -> bool {
    pinned_wire::ids::decode_id(segment).is_ok_and(|id| id.contains('/'))
}

pub(super) fn placement_epoch(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    match find(headers, &pinned_wire::headers::EPOCH) {
        None => Ok(None),
        Some(value) => pinned_wire::epoch::parse(value.as_bytes())
            .map(Some)
            .map_err(|_| Refusal::MalformedEpoch),
    }
}
