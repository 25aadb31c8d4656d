//! The names of the metrics, and of the values that their labels take. No label holds an id, a hostname or an
//! environment (P11, P1.5).

/// Counter `{outcome}`: how requests found their worker; the outcomes are those of [`Resolution`](super::Resolution).
pub const RESOLUTIONS: &str = "pinboard_placement_resolutions_total";
/// Counter `{outcome}`: requests that a worker did not answer; see [`forward_failure`].
pub const FORWARD_FAILURES: &str = "pinboard_forward_failures_total";
/// Counter `{class}`: answers of the data plane; see [`class`].
pub const REQUESTS: &str = "pinboard_requests_total";
/// Histogram: seconds from the head of a data-plane request to the head of its answer.
pub const REQUEST_DURATION: &str = "pinboard_request_duration_seconds";
/// Gauge `{kind}`: connections that are held now; see [`connection`].
pub const ACTIVE_CONNECTIONS: &str = "pinboard_active_connections";
/// Gauge `{state}`: live sessions, as this node sees them; see [`worker_state`].
pub const WORKERS: &str = "pinboard_workers";
/// Histogram `{op}`: seconds of one operation of the registry store, by the name of the operation.
pub const STORE_ROUND_TRIP: &str = "pinboard_store_round_trip_seconds";
/// Counter `{outcome}`: wakes of durable work; see [`wake`].
pub const WAKES: &str = "pinboard_wakes_total";
/// Gauge: marked rows of durable work without a live holder.
pub const UNOWNED_MARKED_ROWS: &str = "pinboard_unowned_marked_rows";
/// Gauge: the epoch of the fleet license that this node runs under.
pub const LICENSE_EPOCH: &str = "pinboard_license_epoch";

/// Values of `outcome` in [`FORWARD_FAILURES`].
pub mod forward_failure {
    /// No connection could be made.
    pub const UNREACHABLE: &str = "unreachable";
    /// The connection broke before an answer came.
    pub const RESET: &str = "reset";
    /// The worker refused, and so did every other that was asked.
    pub const REFUSED: &str = "refused";
    /// No connection was made in time.
    pub const TIMEOUT: &str = "timeout";
}

/// Values of `class` in [`REQUESTS`]: the class of the status.
pub mod class {
    /// 1xx: a connection that was upgraded.
    pub const INFORMATIONAL: &str = "1xx";
    /// 2xx.
    pub const SUCCESS: &str = "2xx";
    /// 3xx.
    pub const REDIRECTION: &str = "3xx";
    /// 4xx.
    pub const CLIENT_ERROR: &str = "4xx";
    /// 5xx.
    pub const SERVER_ERROR: &str = "5xx";

    /// The class of a status.
    ///
    /// ```
    /// assert_eq!(pinboard::metrics::names::class::of(http::StatusCode::NOT_FOUND), "4xx");
    /// ```
    #[must_use]
    pub fn of(status: http::StatusCode) -> &'static str {
        match status.as_u16() {
            100..=199 => INFORMATIONAL,
            200..=299 => SUCCESS,
            300..=399 => REDIRECTION,
            400..=499 => CLIENT_ERROR,
            _ => SERVER_ERROR,
        }
    }
}

/// Values of `kind` in [`ACTIVE_CONNECTIONS`].
pub mod connection {
    /// A client's connection that speaks HTTP.
    pub const CLIENT: &str = "client";
    /// One that was upgraded: a WebSocket or another tunnel.
    pub const TUNNEL: &str = "tunnel";
}

/// Values of `state` in [`WORKERS`]; each session is in one.
pub mod worker_state {
    /// It takes new ids.
    pub const OPEN: &str = "open";
    /// It drains, of its own accord or by an operator's order.
    pub const DRAINING: &str = "draining";
    /// Its advertised URL did not answer for it when last asked.
    pub const UNREACHABLE: &str = "unreachable";
    /// It has been replaced, and its rows wait for its lease to end.
    pub const ENDING: &str = "ending";
}

/// Values of `outcome` in [`WAKES`].
pub mod wake {
    /// It was woken: 200.
    pub const AWAKE: &str = "awake";
    /// It is still activating: 202.
    pub const ACTIVATING: &str = "activating";
    /// The worker refused, and the id is placed again.
    pub const REFUSED: &str = "refused";
    /// There was nowhere to place it.
    pub const UNPLACED: &str = "unplaced";
    /// The worker did not answer, or answered something else.
    pub const FAILED: &str = "failed";
}
