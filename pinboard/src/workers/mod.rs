//! The workers of the fleet, as this node sees them. (Skeleton: the seam that others build against.)

mod token;
mod worker;

pub use worker::Worker;

use std::sync::Arc;

use crate::store::SessionId;

/// The live sessions, as this node has last read them.
#[derive(Debug, Default)]
pub struct Workers {}

impl Workers {
    /// The worker behind a session that lives, as far as this node knows.
    #[must_use]
    pub fn get(&self, _session: &SessionId) -> Option<Arc<Worker>> {
        None
    }

    /// All of them, as of now.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Worker>> {
        Vec::new()
    }
}
