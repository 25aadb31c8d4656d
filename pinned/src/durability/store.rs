//! The contract of a state store (D1 to D6).

use std::fmt;

use futures_util::future::BoxFuture;

use super::claim::{Claim, InstanceKey, TrayKey};
use super::row::{Doc, Row, RowFilter, RowOp, RowState};
use crate::error::BoxError;

/// What a store's operation comes to.
pub type StoreFuture<T> = BoxFuture<'static, Result<T, StoreError>>;

/// Where the rows of instances are kept.
///
/// Every operation, reads included, first acquires its instance: if the claim's epoch is below the stored one it fails
/// with [`StoreError::FenceLost`] and changes nothing; otherwise the claim's epoch becomes the stored one. The check and
/// the operation are one atomic step (D2). An operation that has succeeded is durable.
///
/// Operations of one instance take effect in the order in which they were called, whether or not the earlier futures
/// have been polled to their end. An operation whose future is dropped may or may not take effect; it leaves no lock
/// behind.
///
/// `pinned-testing` has the suite of checks that every store must pass.
pub trait StateStore: Send + Sync + 'static {
    /// Prepares the store: makes what is missing, safely from many workers at once, and again on every start.
    ///
    /// # Errors
    ///
    /// It cannot be reached, was written by a newer version ([`StoreError::TooNew`]), or does not keep its fences
    /// ([`StoreError::Unfenced`]).
    fn setup(&self) -> StoreFuture<()>;

    /// Takes the store for this process alone: in local mode nobody fences two workers against each other. Held until
    /// the store is dropped.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`], which names the holder as far as it is known.
    fn hold_alone(&self) -> StoreFuture<()>;

    /// Lets go of what [`StateStore::hold_alone`] took, as dropping the store does: every instance of the worker has
    /// ended, whoever still holds a handle of it.
    fn let_go(&self) {}

    /// Whether [`StateStore::apply_batch`] is more than an error (D3.5). It never changes.
    fn batches(&self) -> bool;

    /// Writes a whole row, mark and payload together (D3.1).
    ///
    /// # Errors
    ///
    /// [`StoreError::FenceLost`] changes nothing; after [`StoreError::Failed`] it may or may not have happened.
    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()>;

    /// Removes a row; an absent one is a success (D3.2).
    ///
    /// # Errors
    ///
    /// As [`StateStore::set_tray`].
    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()>;

    /// Reads one row (D3.3).
    ///
    /// # Errors
    ///
    /// As [`StateStore::set_tray`]; a read acquires too.
    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>>;

    /// Reads the rows that `filter` admits, ascending by the bytes of `(tray_ns, tray_id)` (D3.4, D5).
    ///
    /// # Errors
    ///
    /// As [`StateStore::set_tray`]; a read acquires too.
    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>>;

    /// Applies all of `ops` in order, or none; acquires once, even when `ops` is empty (D4).
    ///
    /// # Errors
    ///
    /// As [`StateStore::set_tray`]; [`StoreError::Unsupported`] where [`StateStore::batches`] is false.
    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()>;

    /// The instances with a marked row, ascending, those after `after`, at most `limit`: what a worker without a
    /// control plane wakes by itself. Acquires nothing.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>>;

    /// What the start-up block says of the store: its kind and its place, without secrets.
    fn describe(&self) -> String;
}

/// The claim's epoch is below the stored one. Permanent for that epoch: trying again is no use (D2.7).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "fenced off: a newer activation of {instance} has acquired it, epoch {epoch} may write no more"
)]
pub struct FenceLost {
    /// The instance.
    pub instance: InstanceKey,
    /// The epoch that lost.
    pub epoch: u64,
}

impl From<&Claim> for FenceLost {
    fn from(claim: &Claim) -> Self {
        Self {
            instance: claim.instance.clone(),
            epoch: claim.epoch,
        }
    }
}

/// Why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A newer activation has acquired the instance; nothing was changed.
    #[error(transparent)]
    FenceLost(#[from] FenceLost),
    /// The store failed. Whether the operation happened is not known.
    #[error("the state store failed")]
    Failed(#[source] BoxError),
    /// An argument that the store cannot take; nothing was changed (D6).
    #[error("the state store cannot take this: {0}")]
    Invalid(String),
    /// The store has no batches.
    #[error("this state store has no batches")]
    Unsupported,
    /// Another process holds the store in local mode.
    #[error(
        "{store} is in use by {holder}; without a control plane a store belongs to one worker at a time: stop the other \
         one, or give this one a store of its own (`PINNED_STORE`)"
    )]
    Held {
        /// What is held, without secrets.
        store: String,
        /// Who holds it, as far as that is known.
        holder: String,
    },
    /// The store was written by a newer version.
    #[error(
        "{store} has schema version {found}, and this version of pinned knows {known} at most; use a newer pinned"
    )]
    TooNew {
        /// Which store, without secrets.
        store: String,
        /// Its version.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// A write that had to be refused was not: whatever is behind this store does not keep fences.
    #[error(
        "{store} accepted a write at an epoch that a newer one had fenced off; it cannot keep instances apart and is \
         not used"
    )]
    Unfenced {
        /// Which store, without secrets.
        store: String,
    },
}

impl StoreError {
    /// A failure of unknown outcome.
    pub fn failed(error: impl Into<BoxError>) -> Self {
        Self::Failed(error.into())
    }

    /// Whether a newer activation has acquired the instance.
    pub fn is_fence_lost(&self) -> bool {
        matches!(self, Self::FenceLost(_))
    }
}

impl fmt::Debug for dyn StateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateStore").field(&self.describe()).finish()
    }
}

/// The instance that [`prove_fences`] works on; no id of a user's begins like this namespace.
const PROBE_NAMESPACE: &str = "~pinned";

/// Proves that a conditional write that must fail does fail: acquires a probe at epoch 2, and writes at epoch 1. For a
/// store's [`StateStore::setup`], where its own operations are what is to be proved.
///
/// # Errors
///
/// [`StoreError::Unfenced`] when the write at the older epoch was taken, and whatever the store itself says.
pub async fn prove_fences(store: &dyn StateStore) -> Result<(), StoreError> {
    let instance = InstanceKey::new(PROBE_NAMESPACE, "fences");
    let (newer, older) = (Claim::new(instance.clone(), 2), Claim::new(instance, 1));
    let key = TrayKey::new("~probe", "~");
    store.list(newer, RowFilter::all()).await?;
    let written = store.set_tray(older, key, false, Doc::empty()).await;
    match written {
        Err(StoreError::FenceLost(_)) => Ok(()),
        Err(other) => Err(other),
        Ok(()) => Err(StoreError::Unfenced {
            store: store.describe(),
        }),
    }
}
