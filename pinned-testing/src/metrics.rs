//! What was counted.

use std::fmt;
use std::sync::atomic::Ordering;

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, LocalRecorderGuard, Metadata, Recorder, SharedString,
    Unit,
};
use metrics_util::registry::{AtomicStorage, Registry};

/// Reads what this thread counts while it watches.
///
/// A host takes its handles when it first counts something, so begin to watch before the first request.
///
/// ```
/// use pinned_testing::MetricsProbe;
///
/// let probe = MetricsProbe::new();
/// let _watching = probe.watch();
/// metrics::counter!("failures_total", "phase" => "auth", "transport" => "http").increment(2);
/// assert_eq!(probe.counter("failures_total", &[("phase", "auth")]), 2);
/// assert_eq!(probe.counter("failures_total", &[("phase", "lifespan")]), 0);
/// ```
pub struct MetricsProbe {
    recorder: Recording,
}

/// Keeps every metric in memory.
struct Recording {
    registry: Registry<Key, AtomicStorage>,
}

impl MetricsProbe {
    /// A probe that does not watch yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            recorder: Recording {
                registry: Registry::atomic(),
            },
        }
    }

    /// Watches this thread until the guard is dropped.
    #[must_use = "nothing is watched once it is dropped"]
    pub fn watch(&self) -> LocalRecorderGuard<'_> {
        metrics::set_default_local_recorder(&self.recorder)
    }

    /// The sum of the counters called `name` that have all of `labels`.
    #[must_use]
    pub fn counter(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let mut sum = 0;
        self.recorder.registry.visit_counters(|key, counter| {
            if matches(key, name, labels) {
                sum += counter.load(Ordering::Acquire);
            }
        });
        sum
    }

    /// The sum of the gauges called `name` that have all of `labels`.
    #[must_use]
    pub fn gauge(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let mut sum = 0.0;
        self.recorder.registry.visit_gauges(|key, gauge| {
            if matches(key, name, labels) {
                sum += f64::from_bits(gauge.load(Ordering::Acquire));
            }
        });
        sum
    }

    /// The values that the histograms called `name` with all of `labels` were given.
    #[must_use]
    pub fn histogram(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        let mut values = Vec::new();
        self.recorder.registry.visit_histograms(|key, histogram| {
            if matches(key, name, labels) {
                values.extend(histogram.data());
            }
        });
        values
    }
}

fn matches(key: &Key, name: &str, labels: &[(&str, &str)]) -> bool {
    key.name() == name
        && labels.iter().all(|wanted| {
            key.labels()
                .any(|label| (label.key(), label.value()) == *wanted)
        })
}

impl Default for MetricsProbe {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MetricsProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsProbe").finish_non_exhaustive()
    }
}

impl Recorder for Recording {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.registry
            .get_or_create_counter(key, |counter| Counter::from_arc(counter.clone()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.registry
            .get_or_create_gauge(key, |gauge| Gauge::from_arc(gauge.clone()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.registry
            .get_or_create_histogram(key, |histogram| Histogram::from_arc(histogram.clone()))
    }
}
