//! What the scanner counts (P11).

use std::time::Duration;

use metrics::{Unit, counter, describe_gauge, gauge};

use super::Attempt;
use crate::metrics::names;

/// Gauge: for how long the one that waits longest among [`names::UNOWNED_MARKED_ROWS`] has been without a live holder, in seconds.
pub const UNOWNED_MARKED_OLDEST: &str = "pinboard_unowned_marked_oldest_seconds";

/// Tells the recorder what the metrics mean that only the scanner has.
pub fn describe() {
    describe_gauge!(
        UNOWNED_MARKED_OLDEST,
        Unit::Seconds,
        "Time since the oldest of the marked rows without a live holder was first found so."
    );
}

pub(super) fn woken(attempt: &Attempt) {
    counter!(names::WAKES, "outcome" => attempt.outcome()).increment(1);
}

/// Its lag, as the latest whole look found it.
pub(super) fn lag(unowned: u64, oldest: Duration) {
    gauge!(names::UNOWNED_MARKED_ROWS).set(unowned as f64);
    gauge!(UNOWNED_MARKED_OLDEST).set(oldest.as_secs_f64());
}
