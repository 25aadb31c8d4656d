//! Whether a worker serves, and why not.

use super::health::Fault;
use crate::worker::PinnedWorker;

/// Why a worker is not ready: what `/readyz` answers beside a 503.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unready {
    /// A worker with a higher epoch has displaced this one for good (W4.8).
    #[error("superseded by a worker with a higher epoch")]
    Superseded,
    /// The control plane does not know this worker: it has not answered yet, or has lost the session.
    #[error("not registered")]
    NotRegistered,
    /// Heartbeats have gone unanswered for a whole lease: pinboard may have placed its ids elsewhere.
    #[error("lease expired")]
    LeaseExpired,
    /// The runtime runs no tasks: its threads are blocked, or it gets no processor.
    #[error("wedged: the runtime stalls")]
    RuntimeStalls,
    /// Requests to the worker's own router are not answered.
    #[error("wedged: requests to the worker's own router hang")]
    RouterHangs,
}

impl PinnedWorker {
    /// Whether requests are served: this worker is registered, where it has to be, its lease has not expired (W1.6), and it is not
    /// wedged, as far as its [self-probe](crate::SelfProbe) sees.
    pub fn is_ready(&self) -> bool {
        self.readiness().is_ok()
    }

    /// As [`PinnedWorker::is_ready`], with the reason.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn readiness(&self) -> Result<(), Unready> {
        let core = &self.core;
        if core.fleet.is_superseded() {
            Err(Unready::Superseded)
        } else if !core.fleet.is_in() {
            Err(Unready::NotRegistered)
        } else if core.env.lease.expired() {
            Err(Unready::LeaseExpired)
        } else {
            is_wedged(self).map_or(Ok(()), Err)
        }
    }
}

/// What is wrong with the worker itself.
pub(in crate::worker) fn is_wedged(worker: &PinnedWorker) -> Option<Unready> {
    Some(match worker.core.health.fault()? {
        Fault::Runtime => Unready::RuntimeStalls,
        Fault::Router => Unready::RouterHangs,
    })
}
