//! Who is asking, and what they may do (P7). (Skeleton: the seam that others build against.)

mod grants;
mod principal;

pub use grants::{BackendHostRule, Grants};
pub use principal::Principal;

use http::HeaderMap;
use pinned_wire::attestation::Account;

/// The scope of workers.
pub const WORKER_SCOPE: &str = "pinboard:worker";
/// The scope of operators.
pub const OPERATOR_SCOPE: &str = "pinboard:operator";

/// The configured providers and the rules of the namespaces.
#[derive(Debug, Default)]
pub struct Passport {}

/// A request to the data plane that may go on.
#[derive(Debug, Default)]
pub struct Admitted {
    /// Whom a provider vouches for.
    pub account: Option<Account>,
    /// The `Authorization` header was resolved and is not passed on (P7.5).
    pub strip_authorization: bool,
    /// The `pinboard.bearer.*` subprotocol was read and is removed (P7.4).
    pub strip_bearer_subprotocol: bool,
}

/// A request to the data plane that may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// 401: the namespace wants someone that a provider vouches for.
    Unauthenticated,
    /// 403: the account lacks the scope.
    Forbidden,
}

impl Passport {
    /// Whom the `Authorization: Bearer` of a registry call belongs to.
    pub async fn authenticate(&self, _headers: &HeaderMap) -> Option<Principal> {
        None
    }

    /// Whether a request may reach `ns`.
    ///
    /// # Errors
    ///
    /// It may not.
    pub async fn admit(&self, _ns: &str, _headers: &HeaderMap) -> Result<Admitted, Denied> {
        Ok(Admitted::default())
    }
}
