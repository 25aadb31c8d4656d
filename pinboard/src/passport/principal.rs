//! Someone whom a provider vouches for.

use std::sync::Arc;

use pinned_wire::attestation::Account;

use super::Grants;

/// Someone whom a provider vouches for. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Principal {
    /// Who it is, with scopes and claims.
    pub account: Arc<Account>,
    /// What `claims.pinboard` lets them do.
    pub grants: Arc<Grants>,
}

impl Principal {
    /// Whether it has `scope`.
    #[must_use]
    pub fn has(&self, scope: &str) -> bool {
        self.account.scopes.contains(scope)
    }
}
