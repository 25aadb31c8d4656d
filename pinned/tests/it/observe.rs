//! What the product says about itself in a test: its metrics and its log.

use pinned_testing::{CapturedLogs, LogEvent, MetricsProbe, capture_logs};

/// The metrics of this thread from here on.
pub(crate) struct Metrics {
    probe: &'static MetricsProbe,
    _watch: metrics::LocalRecorderGuard<'static>,
}

impl Metrics {
    pub(crate) fn capture() -> Self {
        // Lives as long as the process, which is that of one run of the tests.
        let probe: &'static MetricsProbe = Box::leak(Box::default());
        Self {
            probe,
            _watch: probe.watch(),
        }
    }

    pub(crate) fn counter(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        self.probe.counter(name, labels)
    }

    pub(crate) fn gauge(&self, name: &str) -> f64 {
        self.probe.gauge(name, &[])
    }

    /// How many samples a histogram has taken.
    pub(crate) fn samples(&self, name: &str, labels: &[(&str, &str)]) -> usize {
        self.probe.histogram(name, labels).len()
    }
}

/// The log of this thread from here on.
pub(crate) struct Logs(CapturedLogs);

impl Logs {
    pub(crate) fn capture() -> Self {
        Self(capture_logs())
    }

    /// The events of the product with this level and message.
    pub(crate) fn events(&self, level: &str, message: &str) -> Vec<LogEvent> {
        let mut events = self.0.events();
        events.retain(|event| {
            event.target.starts_with("pinned::")
                && event.level.as_str() == level
                && event.message.starts_with(message)
        });
        events
    }

    #[track_caller]
    pub(crate) fn assert_none(&self, level: &str) {
        let events = self.events(level, "");
        assert!(events.is_empty(), "{events:?}");
    }

    /// One event with this level and message, about instance `id`.
    #[track_caller]
    pub(crate) fn assert_one(&self, level: &str, message: &str, id: &str) -> LogEvent {
        let mut events = self.events(level, message);
        assert_eq!(events.len(), 1, "{:?}", self.0);
        assert_eq!(events[0].field("instance_id"), Some(id));
        assert_eq!(events[0].field("namespace"), Some("/actors"));
        events.remove(0)
    }
}
