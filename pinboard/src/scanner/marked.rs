//! The durable list of ids that have work.

use futures_util::future::BoxFuture;

use crate::store::PlacementKey;

/// An id with a marked row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// The id.
    pub key: PlacementKey,
    /// The highest epoch that the durable store has seen for it; 0 when none.
    pub epoch: u64,
}

/// Where a page ended: the whole key of its last row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The namespace of the instance.
    pub ns: String,
    /// The id of the instance.
    pub id: String,
    /// The namespace of the tray.
    pub tray_ns: String,
    /// The id of the tray.
    pub tray_id: String,
}

/// Some of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedPage {
    /// Ids, each at least once; one may come back on the next page.
    pub ids: Vec<Marked>,
    /// Where to go on from; `None` at the end.
    pub next: Option<Cursor>,
}

/// The list could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the durable store cannot be read")]
pub struct MarkedError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// The durable list of ids that have work. It is only ever read.
///
/// # Cancel safety
///
/// Both operations are cancel safe.
pub trait MarkedRows: Send + Sync + 'static {
    /// The ids after `after`, in the order of the list; some of them.
    ///
    /// # Errors
    ///
    /// The list could not be read.
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<MarkedPage, MarkedError>>;

    /// The highest epoch that the durable store has seen for any id; 0 when none.
    ///
    /// # Errors
    ///
    /// It could not be read.
    fn highest_epoch(&self) -> BoxFuture<'_, Result<u64, MarkedError>>;
}
