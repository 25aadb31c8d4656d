//! The metrics of a host, by their names in W15.

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use std::sync::OnceLock;
use std::time::Duration;

/// Handles are made at the first use after the host starts, so that a recorder installed before serving is found.
pub(crate) struct HostMetrics {
    namespace: String,
    handles: OnceLock<Handles>,
}

struct Handles {
    activations: Counter,
    evictions: Counter,
    aborts: Counter,
    active: Gauge,
    duration: Histogram,
}

/// Whether a request came over HTTP or as a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
    WebSocket,
}

impl Transport {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::WebSocket => "websocket",
        }
    }
}

impl HostMetrics {
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            handles: OnceLock::new(),
        }
    }

    fn handles(&self) -> &Handles {
        self.handles.get_or_init(|| Handles {
            activations: counter!("pinned_instance_activations_total"),
            evictions: counter!("pinned_instance_evictions_total"),
            aborts: counter!("pinned_instance_aborts_total"),
            active: gauge!("pinned_active_instances"),
            duration: histogram!(
                "pinned_request_duration_seconds",
                "namespace" => self.namespace.clone()
            ),
        })
    }

    pub(super) fn activated(&self) {
        let handles = self.handles();
        handles.activations.increment(1);
        handles.active.increment(1.0);
    }

    pub(super) fn evicted(&self, aborted: bool, was_live: bool) {
        let handles = self.handles();
        handles.evictions.increment(1);
        if aborted {
            handles.aborts.increment(1);
        }
        if was_live {
            handles.active.decrement(1.0);
        }
    }

    pub(super) fn took(&self, duration: Duration) {
        self.handles().duration.record(duration.as_secs_f64());
    }

    /// A request failed in `phase`: construct, auth or lifespan.
    pub(crate) fn request_failed(&self, phase: &'static str, transport: Transport) {
        counter!(
            "pinned_request_failures_total",
            "phase" => phase,
            "transport" => transport.as_str()
        )
        .increment(1);
    }

    pub(super) fn callback_failed(&self, hook: &'static str) {
        counter!("pinned_callback_failures_total", "hook" => hook).increment(1);
    }
}
