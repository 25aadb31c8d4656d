//! Sessions that come and go.

use std::sync::Arc;

use super::Worker;

/// Something that this node has learned of the fleet.
#[derive(Clone, Debug)]
pub enum WorkerChange {
    /// A session that it did not know lives.
    Joined(Arc<Worker>),
    /// A session that it knew lives no longer.
    Left {
        /// The session.
        worker: Arc<Worker>,
        /// Whether its lease ran out, or the store lost it: then nobody ended it who could tell.
        lost: bool,
    },
}
