//! Whether this node takes requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What a node is doing. A state is only ever left for a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum NodeState {
    /// It is not listening yet, or has not read the fleet's state.
    Starting,
    /// It serves.
    Serving,
    /// It has been told to stop.
    Stopping,
    /// A fleet with another configuration has taken its place (P10).
    Displaced,
}

/// Whether this node takes requests: shared by those who change that and those who tell it (P3.6). Clones are the same handle.
///
/// ```
/// use pinboard::operators::{NodeState, Readiness};
///
/// let readiness = Readiness::default();
/// readiness.enter(NodeState::Stopping);
/// readiness.enter(NodeState::Serving);
/// assert_eq!(readiness.state(), NodeState::Stopping);
/// ```
#[derive(Clone, Debug)]
pub struct Readiness {
    state: Arc<AtomicU8>,
}

impl Readiness {
    /// Goes on to `state`; nothing happens when it is in a later one already.
    pub fn enter(&self, state: NodeState) {
        self.state.fetch_max(state as u8, Ordering::Release);
    }

    /// What the node is doing.
    #[must_use]
    pub fn state(&self) -> NodeState {
        match self.state.load(Ordering::Acquire) {
            0 => NodeState::Starting,
            1 => NodeState::Serving,
            2 => NodeState::Stopping,
            _ => NodeState::Displaced,
        }
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            state: Arc::new(AtomicU8::new(NodeState::Starting as u8)),
        }
    }
}
