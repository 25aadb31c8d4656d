//! What a simulation starts from.

use std::time::{Duration, SystemTime};

/// The seed, the horizon and the wall clock of a simulation, for [`Sim::try_run`](super::Sim::try_run).
///
/// ```
/// use std::time::Duration;
/// use pinned_testing::sim::{Sim, SimFailure, SimOptions};
///
/// let options = SimOptions::new(7).horizon(Duration::from_secs(60));
/// let outcome = Sim::try_run(options, |sim| async move {
///     sim.domain().sleep(Duration::from_secs(61)).await;
/// });
/// assert!(matches!(outcome, Err(SimFailure::Horizon { .. })));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SimOptions {
    pub(super) seed: u64,
    pub(super) horizon: Duration,
    pub(super) wall_epoch: SystemTime,
}

impl SimOptions {
    /// A day, from the wall time 1,800,000,000 on (S1.3).
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            horizon: Duration::from_secs(86_400),
            wall_epoch: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
        }
    }

    /// How far virtual time may go.
    #[must_use]
    pub fn horizon(mut self, horizon: Duration) -> Self {
        self.horizon = horizon;
        self
    }

    /// What the wall clock shows at the start.
    #[must_use]
    pub fn wall_epoch(mut self, wall_epoch: SystemTime) -> Self {
        self.wall_epoch = wall_epoch;
        self
    }
}
