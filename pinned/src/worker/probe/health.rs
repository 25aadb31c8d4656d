//! What the self-probe has found.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// What the self-probe has found so far; whoever asks reads it without waiting for anybody.
#[derive(Default)]
pub(in crate::worker) struct Health {
    /// How often the runtime has let the probe's task run.
    pulses: AtomicU64,
    faults: Mutex<Faults>,
}

#[derive(Clone, Copy, Default)]
struct Faults {
    runtime: bool,
    router: bool,
}

/// What is wrong with a worker that serves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Fault {
    /// The runtime runs no tasks: its threads are blocked, or it gets no processor.
    Runtime,
    /// Requests to the worker's own router are not answered.
    Router,
}

impl Faults {
    fn of(&mut self, fault: Fault) -> &mut bool {
        match fault {
            Fault::Runtime => &mut self.runtime,
            Fault::Router => &mut self.router,
        }
    }

    fn worst(self) -> Option<Fault> {
        match self {
            Self { runtime: true, .. } => Some(Fault::Runtime),
            Self { router: true, .. } => Some(Fault::Router),
            _ => None,
        }
    }
}

impl Health {
    pub(in crate::worker) fn new() -> Self {
        gauge(true);
        Self::default()
    }

    /// The runtime runs the probe's task.
    pub(super) fn pulse(&self) {
        self.pulses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn pulses(&self) -> u64 {
        self.pulses.load(Ordering::Relaxed)
    }

    pub(super) fn fault(&self) -> Option<Fault> {
        self.faults.lock().worst()
    }

    /// Notes whether `fault` is there, `after` as long without an answer; says so once per change.
    pub(super) fn set(&self, fault: Fault, is_there: bool, after: Duration) {
        let mut faults = self.faults.lock();
        if std::mem::replace(faults.of(fault), is_there) == is_there {
            return;
        }
        // Under the lock: two who find different things leave the gauge as the later one found it.
        gauge(faults.worst().is_none());
        drop(faults);
        if is_there {
            metrics::counter!("pinned_self_probe_failures_total", "reason" => fault.slug())
                .increment(1);
            tracing::error!(
                target: "pinned::worker",
                reason = fault.slug(),
                after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                "the self-probe gets no answer; this worker is not ready: {}", fault.text()
            );
        } else {
            tracing::info!(target: "pinned::worker", reason = fault.slug(), "the self-probe is answered again");
        }
    }
}

impl Fault {
    /// As metrics and logs name it.
    fn slug(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Router => "router",
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Runtime => "the runtime stalls",
            Self::Router => "requests to the worker's own router hang",
        }
    }
}

fn gauge(is_healthy: bool) {
    metrics::gauge!("pinned_self_probe_healthy").set(if is_healthy { 1.0 } else { 0.0 });
}
