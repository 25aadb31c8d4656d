//! The sessions of the fleet, as this node knows them.

use std::sync::Arc;

use crate::store::{SessionId, SessionView, StoreFuture};

/// The sessions of the fleet, as this node has last read them from the store.
///
/// What it says may be a sweep interval old; the store alone decides what lives.
pub trait Roster: Send + Sync + 'static {
    /// One session, if it lives as far as this node knows.
    fn session(&self, id: &SessionId) -> Option<Arc<SessionView>>;

    /// All of them.
    fn sessions(&self) -> Vec<Arc<SessionView>>;

    /// Reads now what has changed: everything that was in the store when this was called is known when it is done.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    ///
    /// # Cancel safety
    ///
    /// What has been read is known or is read again.
    fn refresh(&self) -> StoreFuture<'_, ()>;

    /// Something has changed: read it soon. Waits for nothing.
    fn poke(&self);
}
