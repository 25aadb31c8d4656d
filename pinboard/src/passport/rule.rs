//! Whom a namespace admits (P7.4).

use super::{Denied, Principal};

/// Whom a namespace admits; without a rule it is [`Anyone`](Rule::Anyone).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// `"anyone"`.
    #[default]
    Anyone,
    /// `"authenticated"`.
    Authenticated,
    /// `"scope:NAME"`.
    Scope(Box<str>),
}

impl Rule {
    pub(super) fn check(&self, who: Option<&Principal>) -> Result<(), Denied> {
        match (self, who) {
            (Self::Anyone, _) | (Self::Authenticated, Some(_)) => Ok(()),
            (Self::Authenticated | Self::Scope(_), None) => Err(Denied::Unauthenticated),
            (Self::Scope(scope), Some(who)) if who.has(scope) => Ok(()),
            (Self::Scope(_), Some(_)) => Err(Denied::Forbidden),
        }
    }

    pub(super) fn admits_anyone(&self) -> bool {
        *self == Self::Anyone
    }
}
