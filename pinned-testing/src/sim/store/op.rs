//! Operations of a simulated store, and what becomes of them.

use std::fmt;

use pinned::durability::{InstanceKey, StoreError};

/// One operation of a [`SimStore`](super::SimStore), as scripts and logs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimOp {
    /// The how-many-th operation on its disk, from 1 on, over all lives of the processes on it (S2.9).
    pub index: u64,
    /// Which operation.
    pub name: OpName,
    /// Whose rows.
    pub instance: InstanceKey,
    /// At which epoch.
    pub epoch: u64,
}

/// The operations of a store that acquire an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpName {
    /// [`StateStore::set_tray`](pinned::durability::StateStore::set_tray)
    SetTray,
    /// [`StateStore::delete_tray`](pinned::durability::StateStore::delete_tray)
    DeleteTray,
    /// [`StateStore::get_tray`](pinned::durability::StateStore::get_tray)
    GetTray,
    /// [`StateStore::list`](pinned::durability::StateStore::list)
    List,
    /// [`StateStore::apply_batch`](pinned::durability::StateStore::apply_batch)
    ApplyBatch,
}

/// What becomes of an operation (S2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SimOutcome {
    /// It runs, and its result is returned.
    Applied,
    /// Nothing changes, and a failure is reported.
    Rejected,
    /// It runs, and a failure is reported: the answer is lost after the commit.
    AmbiguousCommitted,
    /// Nothing changes, and a failure is reported: the request is lost.
    AmbiguousLost,
}

/// An operation with its outcome, in the log of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedOp {
    /// The operation.
    pub op: SimOp,
    /// What became of it.
    pub outcome: SimOutcome,
}

/// The one failure of a simulated store: a caller cannot tell a rejection from a lost answer (S2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulated store has failed; whether it took effect is not known")]
pub struct StoreFailed;

impl StoreFailed {
    /// Whether `error` is this failure, which a caller may try again.
    #[must_use]
    pub fn is_why(error: &StoreError) -> bool {
        matches!(error, StoreError::Failed(cause) if cause.is::<Self>())
    }
}

impl From<StoreFailed> for StoreError {
    fn from(failed: StoreFailed) -> Self {
        Self::failed(failed)
    }
}

impl fmt::Display for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SetTray => "set_tray",
            Self::DeleteTray => "delete_tray",
            Self::GetTray => "get_tray",
            Self::List => "list",
            Self::ApplyBatch => "apply_batch",
        })
    }
}
