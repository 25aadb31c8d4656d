//! Draining a worker (H10.4, H10.12, W13.1).

use std::time::Duration;

use super::PinnedWorker;
use crate::domain::saturating_add;
use crate::host::wind_down::{DrainSource, WindDown};

impl PinnedWorker {
    /// Drains every host: no new activations, idle instances close now, busy ones when they are done, and what is left
    /// at `deadline` from now is cut off; `None` never cuts off. Resolves once nothing is left, or the drain is revoked.
    ///
    /// The latest call replaces the deadline of the one before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the wait; the drain goes on until [`PinnedWorker::revoke_drain`].
    pub async fn drain(&self, deadline: Option<Duration>) {
        let now = self.core.env.domain.monotonic();
        let drain = WindDown {
            deadline: deadline.map(|after| saturating_add(now, after)),
        };
        tracing::info!(target: "pinned::worker", ?deadline, "drain begun");
        self.apply_drain(DrainSource::Host, Some(drain));
        self.core.fleet.set_draining(true);
        for host in self.each_host() {
            host.wait_drained().await;
        }
        if self.is_drained() {
            tracing::info!(target: "pinned::worker", "drain complete");
        }
    }

    /// Lifts the drain: new activations are admitted again. Instances that were closed stay closed.
    pub fn revoke_drain(&self) {
        tracing::info!(target: "pinned::worker", "drain revoked");
        self.apply_drain(DrainSource::Host, None);
        self.core.fleet.set_draining(false);
    }

    fn apply_drain(&self, source: DrainSource, drain: Option<WindDown>) {
        let core = &self.core;
        core.hosts.apply_drain(source, drain, &core.env.lease);
    }

    /// The drain that a control plane asks for, in its own slot beside [`PinnedWorker::drain`]; each one's end leaves
    /// the other in force (H10.4). The seam through which a test
    /// stands in for one.
    #[doc(hidden)]
    pub fn server_drain(&self, drain: Option<Option<Duration>>) {
        let now = self.core.env.domain.monotonic();
        let asked = drain.map(|deadline| WindDown {
            deadline: deadline.map(|after| saturating_add(now, after)),
        });
        let news = if asked.is_some() { "begun" } else { "revoked" };
        tracing::info!(target: "pinned::worker", deadline = ?drain.flatten(), "server drain {news}");
        self.apply_drain(DrainSource::Server, asked);
    }

    /// Whether any host drains.
    pub fn is_draining(&self) -> bool {
        self.each_host().any(|host| host.is_draining())
    }

    /// Draining, and no instance is left anywhere.
    pub fn is_drained(&self) -> bool {
        self.is_draining() && self.each_host().all(|host| host.is_empty())
    }
}
