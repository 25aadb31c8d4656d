//! What happened, in order.

use std::fmt;
use std::time::Duration;

/// One line of a trace: the virtual time, and `<task> <event>` (S1.10).
///
/// ```
/// use pinned_testing::sim::Sim;
///
/// let trace = Sim::run(1, |sim| async move {
///     sim.note("hello");
///     sim.trace()
/// });
/// assert_eq!(trace[0].to_string(), "0.000000000 main hello");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceEvent {
    /// The virtual time.
    pub at: Duration,
    /// Which task, and what of it: `spawn`, `sleep`, `wake`, the `start`, `crash` or `exit` of a process, or a note.
    pub event: String,
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.at.as_secs(), self.at.subsec_nanos());
        write!(f, "{seconds}.{nanos:09} {}", self.event)
    }
}
