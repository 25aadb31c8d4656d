//! What a node counts, for its operators (P3.3).

use std::sync::Arc;

use super::registry_store::RoundTripTimes;
use crate::operators::{Connections, Figures, NodeFigures};
use crate::placement::Placement;

/// How many connections there are, and were.
pub(super) type CountConnections = Arc<dyn Fn() -> Connections + Send + Sync>;

/// Reads the counters of the parts that count.
pub(super) struct Counted {
    pub(super) placement: Placement,
    pub(super) round_trips: Arc<RoundTripTimes>,
    pub(super) connections: CountConnections,
}

impl Figures for Counted {
    fn figures(&self) -> NodeFigures {
        let resolutions = self.placement.resolutions();
        NodeFigures {
            resolutions: resolutions
                .iter()
                .map(|(resolution, count)| (resolution.as_str().to_owned(), count))
                .collect(),
            connections: (self.connections)(),
            round_trips: self.round_trips.read(),
        }
    }
}
