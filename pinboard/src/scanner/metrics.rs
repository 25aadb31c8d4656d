//! What the scanner counts (P11).

use std::time::Duration;

use super::Attempt;

pub(super) fn woken(attempt: &Attempt) {
    metrics::counter!("pinboard_wakes_total", "outcome" => attempt.outcome()).increment(1);
}

/// Its lag, as the latest whole look found it.
pub(super) fn lag(unowned: u64, oldest: Duration) {
    metrics::gauge!("pinboard_unowned_marked_rows").set(unowned as f64);
    metrics::gauge!("pinboard_unowned_marked_oldest_seconds").set(oldest.as_secs_f64());
}
