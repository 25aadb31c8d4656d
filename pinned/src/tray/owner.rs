//! What trays ask of the instance that they belong to.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::domain::Domain;

/// How a pump takes the cut of its instance's work (T16.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The first one ends it.
    AtOnce,
    /// It drains on through an eviction's deadline; an abort, or the second cut, ends it.
    Patient,
}

pub(crate) trait TrayOwner: Send + Sync + 'static {
    fn domain(&self) -> &Domain;

    /// Whether the instance is winding down (T16.1).
    fn is_evicting(&self) -> bool;

    /// Resolves once the instance winds down.
    fn evicting(self: Arc<Self>) -> BoxFuture<'static, ()>;

    /// Whether work of this kind has been cut.
    fn is_cut(&self, cut: Cut) -> bool;

    /// Resolves once work of this kind is cut.
    fn cut(self: Arc<Self>, cut: Cut) -> BoxFuture<'static, ()>;

    /// Crash-only: the instance ends, and the next activation redelivers (T18.1).
    fn abort(self: Arc<Self>);

    /// Runs a pump or a close as work of the instance (T10.1). It ends by itself when it is cut.
    fn spawn_tracked(self: Arc<Self>, work: BoxFuture<'static, ()>);
}
