//! Who is calling, as handlers see it.

use super::{Account, Claims};

/// The verified sender of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Caller {
    /// Another instance of the fleet.
    Instance {
        /// Its namespace, with the slash.
        ns: String,
        /// Its id.
        id: String,
        /// How many calls from instance to instance led here.
        depth: u64,
    },
    /// Someone from outside whom pinboard has verified.
    Account(Account),
    /// Anyone.
    Anonymous,
}

impl From<Claims> for Caller {
    /// A calling instance counts before an account; one that cannot be read makes the caller anonymous rather than
    /// somebody else.
    fn from(claims: Claims) -> Self {
        match (claims.caller, claims.acct) {
            (Some(caller), _) => match caller.rsplit_once('/') {
                Some((ns, id)) if !ns.is_empty() && !id.is_empty() => Self::Instance {
                    ns: ns.to_owned(),
                    id: id.to_owned(),
                    depth: claims.depth.unwrap_or(0),
                },
                _ => Self::Anonymous,
            },
            (None, Some(account)) => Self::Account(account),
            (None, None) => Self::Anonymous,
        }
    }
}
