//! What operations came to, held against the rules.

use std::fmt;
use std::time::Duration;

use crate::store::{Claimed, Row, StoreError};

/// What an operation came to, held against a rule.
pub(super) trait Verdict<T> {
    /// The value; any error breaks `rule`.
    fn holds(self, rule: &str) -> T;
}

impl<T> Verdict<T> for Result<T, StoreError> {
    #[track_caller]
    fn holds(self, rule: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => panic!("{rule}: the operation has to succeed, and failed: {error:?}"),
        }
    }
}

impl Claimed {
    /// The epoch, and whether a holder lost the id; anything but a placement breaks `rule`.
    #[track_caller]
    pub(super) fn placed(self, rule: &str) -> (u64, bool) {
        match self {
            Self::Placed { epoch, replaced } => (epoch, replaced),
            other => panic!("{rule}: expected a placement, found {other:?}"),
        }
    }

    /// The row that stands in the way; anything else breaks `rule`.
    #[track_caller]
    pub(super) fn held(self, rule: &str) -> Row {
        match self {
            Self::Held(row) => row,
            other => panic!("{rule}: expected that somebody holds it, found {other:?}"),
        }
    }
}

/// Holds `actual` against `expected`.
#[track_caller]
pub(super) fn same<T: PartialEq + fmt::Debug>(rule: &str, what: &str, actual: &T, expected: &T) {
    assert!(
        actual == expected,
        "{rule}: {what}: expected {expected:?}, found {actual:?}"
    );
}

/// Breaks `rule` unless `kept`.
#[track_caller]
pub(super) fn holds(rule: &str, expected: &str, kept: bool) {
    assert!(kept, "{rule}: expected that {expected}");
}

/// Holds what is left of `whole` against a wait that cannot have been longer than half of it.
#[track_caller]
pub(super) fn counts_down(rule: &str, what: &str, left: Duration, whole: Duration) {
    assert!(
        left <= whole && left > whole / 2,
        "{rule}: {what}: expected a little less than {whole:?}, found {left:?}"
    );
}
