//! What was logged.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// While there is a single subscriber, `tracing` lets the first thread that reaches an event decide whether anybody
/// wants it; a thread without a subscriber then silences it for all. Of two, it asks both.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

/// What this thread logs, from [`capture_logs`] until it is dropped.
#[must_use = "nothing is captured once it is dropped"]
pub struct CapturedLogs {
    events: Arc<Mutex<Vec<LogEvent>>>,
    _installed: DefaultGuard,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogEvent {
    /// The target, such as `pinned::host`.
    pub target: String,
    /// The level.
    pub level: Level,
    /// The text.
    pub message: String,
    /// The other fields, as they are written.
    pub fields: BTreeMap<&'static str, String>,
}

/// Captures the `tracing` events of this thread; those of a current-thread runtime are all there are.
///
/// ```
/// use pinned_testing::capture_logs;
///
/// let logs = capture_logs();
/// tracing::warn!(target: "pinned::host", instance_id = "blue", "evicting");
/// let event = logs.find("evicting").expect("just logged");
/// assert_eq!(event.level, tracing::Level::WARN);
/// assert_eq!(event.field("instance_id"), Some("blue"));
/// assert_eq!(logs.with_target("pinned::lease").len(), 0);
/// ```
pub fn capture_logs() -> CapturedLogs {
    LazyLock::force(&SECOND);
    let events = Arc::<Mutex<Vec<LogEvent>>>::default();
    let layer = Capture {
        events: Arc::clone(&events),
    };
    CapturedLogs {
        events,
        _installed: tracing::subscriber::set_default(tracing_subscriber::registry().with(layer)),
    }
}

// ===== impl CapturedLogs =====

impl CapturedLogs {
    /// All events so far.
    #[must_use]
    pub fn events(&self) -> Vec<LogEvent> {
        self.events.lock().clone()
    }

    /// Those under `target` or below it.
    #[must_use]
    pub fn with_target(&self, target: &str) -> Vec<LogEvent> {
        let mut events = self.events();
        events.retain(|event| {
            let below = event.target.strip_prefix(target);
            below.is_some_and(|below| below.is_empty() || below.starts_with("::"))
        });
        events
    }

    /// The first event whose text contains `text`.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<LogEvent> {
        let events = self.events.lock();
        events
            .iter()
            .find(|event| event.message.contains(text))
            .cloned()
    }

    /// How many events have a text that contains `text`.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        let events = self.events.lock();
        events
            .iter()
            .filter(|event| event.message.contains(text))
            .count()
    }

    /// Forgets the events so far.
    pub fn clear(&self) {
        self.events.lock().clear();
    }
}

impl fmt::Debug for CapturedLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CapturedLogs")
            .field(&self.events.lock())
            .finish()
    }
}

// ===== impl LogEvent =====

impl LogEvent {
    /// The field of that name, as it is written.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

struct Capture {
    events: Arc<Mutex<Vec<LogEvent>>>,
}

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        self.events.lock().push(LogEvent {
            target: event.metadata().target().to_owned(),
            level: *event.metadata().level(),
            message,
            fields: fields.0,
        });
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.0.insert(field.name(), value.to_string());
    }
}
