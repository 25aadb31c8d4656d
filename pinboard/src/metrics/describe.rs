//! The help texts of the metrics.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

use super::names;

/// Tells the recorder what each metric means. Call it once, after the recorder is installed.
pub fn describe() {
    describe_counter!(
        names::RESOLUTIONS,
        "How requests found the worker that holds their id, or why there was none."
    );
    describe_counter!(
        names::FORWARD_FAILURES,
        "Requests that no worker answered, by what went wrong."
    );
    describe_counter!(
        names::REQUESTS,
        "Answers of the data plane, by the class of their status."
    );
    describe_histogram!(
        names::REQUEST_DURATION,
        Unit::Seconds,
        "Time from the head of a data-plane request to the head of its answer."
    );
    describe_gauge!(
        names::ACTIVE_CONNECTIONS,
        "Connections that are held now, by what they are used for."
    );
    describe_gauge!(
        names::WORKERS,
        "Live worker sessions as this node sees them, by whether they take new ids."
    );
    describe_histogram!(
        names::STORE_ROUND_TRIP,
        Unit::Seconds,
        "Time that one operation of the registry store took."
    );
    describe_counter!(
        names::WAKES,
        "Attempts to wake durable work that nobody holds, by what came of them."
    );
    describe_gauge!(
        names::UNOWNED_MARKED_ROWS,
        "Rows of durable work that are marked and have no live holder."
    );
    describe_gauge!(
        names::LICENSE_EPOCH,
        "The epoch of the fleet license that this node runs under."
    );
}
