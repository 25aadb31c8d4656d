//! What a node counts, for its operators (P3.3).

use std::sync::Arc;

use parking_lot::Mutex;

use super::registry_store::RoundTripTimes;
use crate::operators::{Connections, Figures, NodeFigures};
use crate::placement::Placement;
use crate::server::Server;

/// How many connections there are, and were: known to the server, which is made after the routes that tell of them, and has them.
#[derive(Default)]
pub(super) struct OpenConnections(Mutex<Option<Server>>);

impl OpenConnections {
    /// From now on those of this server.
    pub(super) fn are_of(&self, server: Server) {
        *self.0.lock() = Some(server);
    }

    /// Lets go of the server, which would keep itself otherwise.
    pub(super) fn forget(&self) {
        let server = self.0.lock().take();
        drop(server);
    }

    fn read(&self) -> Connections {
        match &*self.0.lock() {
            None => Connections::default(),
            Some(server) => {
                let counts = server.connections();
                Connections {
                    now: counts.now as u64,
                    total: counts.total,
                }
            }
        }
    }
}

/// Reads the counters of the parts that count.
pub(super) struct Counted {
    pub(super) placement: Placement,
    pub(super) round_trips: Arc<RoundTripTimes>,
    pub(super) connections: Arc<OpenConnections>,
}

impl Figures for Counted {
    fn figures(&self) -> NodeFigures {
        let resolutions = self.placement.resolutions();
        NodeFigures {
            resolutions: resolutions
                .iter()
                .map(|(resolution, count)| (resolution.as_str().to_owned(), count))
                .collect(),
            connections: self.connections.read(),
            round_trips: self.round_trips.read(),
        }
    }
}
