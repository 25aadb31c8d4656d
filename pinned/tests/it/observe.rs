//! What the product says about itself in a test: its metrics and its log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// The metrics of this thread from here on.
pub(crate) struct Metrics {
    snapshotter: Snapshotter,
    /// Counters and gauges so far; taking a snapshot resets the recorder's own.
    known: Mutex<BTreeMap<String, f64>>,
    _local: metrics::LocalRecorderGuard<'static>,
}

impl Metrics {
    pub(crate) fn capture() -> Self {
        // Lives as long as the process, which is that of one run of the tests.
        let recorder: &'static DebuggingRecorder = Box::leak(Box::default());
        Self {
            snapshotter: recorder.snapshotter(),
            known: Mutex::default(),
            _local: metrics::set_default_local_recorder(recorder),
        }
    }

    /// The value of a counter or gauge, or the number of samples of a histogram: `name{label=value}`.
    pub(crate) fn value(&self, name: &str) -> f64 {
        let mut known = self.known.lock();
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let (kind, key) = key.into_parts();
            let labels: Vec<String> = key
                .labels()
                .map(|label| format!("{}={}", label.key(), label.value()))
                .collect();
            let labels = if labels.is_empty() {
                String::new()
            } else {
                format!("{{{}}}", labels.join(","))
            };
            let value = match value {
                DebugValue::Counter(count) => count as f64,
                DebugValue::Gauge(value) => value.into_inner(),
                DebugValue::Histogram(samples) => samples.len() as f64,
            };
            let total = known.entry(format!("{}{labels}", key.name())).or_default();
            // A gauge that was read starts over at what is added from then on, as a counter does.
            *total = if kind == MetricKind::Gauge && !key.name().ends_with("_instances") {
                value
            } else {
                *total + value
            };
        }
        known.get(name).copied().unwrap_or_default()
    }
}

/// The log of this thread from here on.
pub(crate) struct Logs {
    events: Arc<Mutex<Vec<Event>>>,
    _local: DefaultGuard,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Event {
    level: String,
    target: String,
    fields: BTreeMap<&'static str, String>,
}

impl Event {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// Keeps every event of interest to somebody. Otherwise one that comes up for the first time in a test without a
/// subscriber, while another test begins to capture, could be switched off for both.
pub(crate) fn stay_interested() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // Whoever set another one has seen to it.
        let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    });
}

impl Logs {
    pub(crate) fn capture() -> Self {
        stay_interested();
        let events = Arc::default();
        let collect = Collect(Arc::clone(&events));
        let subscriber = tracing_subscriber::registry().with(collect);
        Self {
            events,
            _local: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The events of the product with this level and message.
    pub(crate) fn events(&self, level: &str, message: &str) -> Vec<Event> {
        let events = self.events.lock();
        let matches =
            |event: &&Event| event.level == level && event.field("message").starts_with(message);
        events.iter().filter(matches).cloned().collect()
    }

    #[track_caller]
    pub(crate) fn assert_none(&self, level: &str) {
        let events = self.events(level, "");
        assert!(events.is_empty(), "{events:?}");
    }

    /// One event with this level and message, about instance `id`.
    #[track_caller]
    pub(crate) fn assert_one(&self, level: &str, message: &str, id: &str) -> Event {
        let events = self.events(level, message);
        assert_eq!(events.len(), 1, "{:?}", self.events.lock());
        assert_eq!(events[0].field("instance_id"), id);
        assert_eq!(events[0].field("namespace"), "/actors");
        events[0].clone()
    }
}

struct Collect(Arc<Mutex<Vec<Event>>>);

impl<S: tracing::Subscriber> Layer<S> for Collect {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        if !metadata.target().starts_with("pinned") {
            return;
        }
        let mut seen = Event {
            level: metadata.level().to_string(),
            target: metadata.target().to_owned(),
            ..Event::default()
        };
        // Every event of the product has a target of its own.
        assert!(seen.target.starts_with("pinned::"), "{seen:?}");
        event.record(&mut seen);
        self.0.lock().push(seen);
    }
}

impl Visit for Event {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}
