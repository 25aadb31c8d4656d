//! What is to go wrong.

use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use pinned::domain::Rng;

use super::op::{SimOp, SimOutcome};

type Script = Arc<dyn Fn(&SimOp) -> Option<SimOutcome> + Send + Sync>;
type Hook = Arc<dyn Fn(&SimOp) -> ControlFlow<()> + Send + Sync>;

/// What becomes of the operations of a [`SimStore`](super::SimStore), and how long they take. At first nothing goes
/// wrong, and no time passes.
///
/// ```
/// use std::time::Duration;
/// use pinned_testing::sim::{OpName, SimOutcome, SimSchedule};
///
/// let schedule = SimSchedule::new()
///     .faults(0.25, 0.25)
///     .latency(Duration::ZERO..=Duration::from_millis(10))
///     // The answer to the third operation is lost, whatever the dice say.
///     .script(|op| (op.index == 3).then_some(SimOutcome::AmbiguousCommitted));
/// ```
#[derive(Clone)]
#[must_use = "a schedule is for a `SimStore`"]
pub struct SimSchedule {
    reject: f64,
    ambiguous: f64,
    latency: RangeInclusive<Duration>,
    script: Option<Script>,
    before: Option<Hook>,
    pub(super) batches: bool,
}

/// A schedule that cannot be kept (S2.10).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSchedule {
    /// Not a probability, or more than certain together.
    #[error(
        "{reject} to reject and {ambiguous} to leave open are no probabilities within 0 to 1, or add up to more"
    )]
    #[non_exhaustive]
    Probability {
        /// What was asked for.
        reject: f64,
        /// What was asked for.
        ambiguous: f64,
    },
    /// The shortest latency is longer than the longest.
    #[error("a latency from {low:?} to {high:?} is none")]
    #[non_exhaustive]
    Latency {
        /// The shortest.
        low: Duration,
        /// The longest.
        high: Duration,
    },
}

impl SimSchedule {
    /// Everything is applied, at once.
    pub fn new() -> Self {
        Self {
            reject: 0.0,
            ambiguous: 0.0,
            latency: Duration::ZERO..=Duration::ZERO,
            script: None,
            before: None,
            batches: true,
        }
    }

    /// The probabilities of a rejection, and of an answer that leaves open what happened: one half of those has
    /// happened (S2.4).
    pub fn faults(mut self, reject: f64, ambiguous: f64) -> Self {
        self.reject = reject;
        self.ambiguous = ambiguous;
        self
    }

    /// How long an operation takes at least and at most.
    pub fn latency(mut self, latency: RangeInclusive<Duration>) -> Self {
        self.latency = latency;
        self
    }

    /// Settles outcomes by hand; what `script` has no opinion on is drawn (S2.5).
    pub fn script(
        mut self,
        script: impl Fn(&SimOp) -> Option<SimOutcome> + Send + Sync + 'static,
    ) -> Self {
        self.script = Some(Arc::new(script));
        self
    }

    /// Calls `hook` before each operation. With [`ControlFlow::Break`] the process is dead from then on: neither this
    /// operation nor any later one takes place or returns (S3.2).
    pub fn before_op(
        mut self,
        hook: impl Fn(&SimOp) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.before = Some(Arc::new(hook));
        self
    }

    /// Hides batches, so that every row write is an operation of its own (S2.11).
    pub fn single_writes(mut self) -> Self {
        self.batches = false;
        self
    }

    pub(super) fn check(&self) -> Result<(), BadSchedule> {
        let (reject, ambiguous) = (self.reject, self.ambiguous);
        let probable = |p: f64| (0.0..=1.0).contains(&p);
        if !(probable(reject) && probable(ambiguous) && probable(reject + ambiguous)) {
            return Err(BadSchedule::Probability { reject, ambiguous });
        }
        let (low, high) = (*self.latency.start(), *self.latency.end());
        if low > high {
            return Err(BadSchedule::Latency { low, high });
        }
        Ok(())
    }

    /// Whether the process lives on and comes to this operation.
    pub(crate) fn survives(&self, op: &SimOp) -> bool {
        self.before
            .as_ref()
            .is_none_or(|hook| hook(op).is_continue())
    }

    /// A pinned outcome skips the draw.
    pub(super) fn outcome(&self, op: &SimOp, dice: &Rng) -> SimOutcome {
        let pinned = self.script.as_ref().and_then(|script| script(op));
        pinned.unwrap_or_else(|| {
            let drawn = dice.uniform(0.0..1.0);
            if drawn < self.reject {
                SimOutcome::Rejected
            } else if drawn < self.reject + self.ambiguous / 2.0 {
                SimOutcome::AmbiguousCommitted
            } else if drawn < self.reject + self.ambiguous {
                SimOutcome::AmbiguousLost
            } else {
                SimOutcome::Applied
            }
        })
    }

    pub(super) fn draw_latency(&self, dice: &Rng) -> Duration {
        let (low, high) = (*self.latency.start(), *self.latency.end());
        low + (high - low).mul_f64(dice.uniform(0.0..1.0))
    }
}

impl Default for SimSchedule {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimSchedule")
            .field("reject", &self.reject)
            .field("ambiguous", &self.ambiguous)
            .field("latency", &self.latency)
            .field("batches", &self.batches)
            .finish_non_exhaustive()
    }
}
