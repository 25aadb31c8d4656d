//! What the proxy counts (P11).

use http::StatusCode;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::metrics::names::{self, class, connection, forward_failure};
use crate::upstream::ExchangeErrorKind;

/// Handles that are made once: finding one costs more than counting.
pub(super) struct ProxyMetrics {
    /// By the first digit of the status.
    requests: [Counter; 5],
    pub(super) duration: Histogram,
    pub(super) tunnels: Gauge,
    unreachable: Counter,
    reset: Counter,
    refused: Counter,
    timeout: Counter,
}

impl ProxyMetrics {
    pub(super) fn new() -> Self {
        let failures = |outcome| counter!(names::FORWARD_FAILURES, "outcome" => outcome);
        let classes = [
            class::INFORMATIONAL,
            class::SUCCESS,
            class::REDIRECTION,
            class::CLIENT_ERROR,
            class::SERVER_ERROR,
        ];
        Self {
            requests: classes.map(|class| counter!(names::REQUESTS, "class" => class)),
            duration: histogram!(names::REQUEST_DURATION),
            tunnels: gauge!(names::ACTIVE_CONNECTIONS, "kind" => connection::TUNNEL),
            unreachable: failures(forward_failure::UNREACHABLE),
            reset: failures(forward_failure::RESET),
            refused: failures(forward_failure::REFUSED),
            timeout: failures(forward_failure::TIMEOUT),
        }
    }

    pub(super) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).clamp(1, self.requests.len());
        self.requests[class - 1].increment(1);
    }

    /// A worker has not run a request, and no other has.
    pub(super) fn refused(&self) {
        self.refused.increment(1);
    }

    pub(super) fn failed(&self, kind: ExchangeErrorKind) {
        match kind {
            ExchangeErrorKind::ConnectTimeout => self.timeout.increment(1),
            ExchangeErrorKind::Unreachable => self.unreachable.increment(1),
            // The client's doing.
            ExchangeErrorKind::Body => {}
            _ => self.reset.increment(1),
        }
    }
}

/// One more in a gauge, for as long as it is held.
#[derive(Debug)]
pub(crate) struct Held(Gauge);

impl Held {
    pub(crate) fn new(gauge: Gauge) -> Self {
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}
