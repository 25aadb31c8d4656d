//! One worker.

use http::HeaderValue;
use pinned_wire::attestation::Claims;

use crate::store::{SessionId, SessionView};
use crate::upstream::Backend;

/// One worker session, as this node has last read it: what it said of itself, the connections to it, and its tokens.
#[derive(Debug)]
pub struct Worker {
    /// Its session.
    pub id: SessionId,
    /// As last read.
    pub view: parking_lot::RwLock<std::sync::Arc<SessionView>>,
    /// The connections to it.
    pub backend: Backend,
}

impl Worker {
    /// Whether its lease runs for some time yet, as far as this node knows.
    #[must_use]
    pub fn is_live(&self) -> bool {
        true
    }

    /// The token of a request from nobody in particular; minted once a second.
    #[must_use]
    pub fn anonymous_token(&self) -> HeaderValue {
        HeaderValue::from_static("")
    }

    /// The token of a request with claims of its own: a calling instance, an account.
    #[must_use]
    pub fn token(&self, _claims: impl FnOnce(Claims) -> Claims) -> HeaderValue {
        HeaderValue::from_static("")
    }
}
