//! How it is written.

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use super::LogFilter;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object each, for programs.
    Json,
    /// For people, with or without colours.
    Human {
        /// Whether the reader shows colours.
        ansi: bool,
    },
}

impl LogFormat {
    /// The one for standard output, as it is now.
    #[must_use]
    pub fn of_stdout() -> Self {
        if io::stdout().is_terminal() {
            let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            Self::Human { ansi: !plain }
        } else {
            Self::Json
        }
    }
}

/// Logs to standard output from now on, in the process's only subscriber; does nothing where there is one already.
pub fn install(filter: LogFilter) {
    // Another one, such as an embedding program's, has precedence.
    let _ = subscriber(filter, LogFormat::of_stdout(), io::stdout).try_init();
}

/// What [`install`] installs, over another writer.
pub fn subscriber<W>(
    filter: LogFilter,
    format: LogFormat,
    writer: W,
) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // A reader that has gone away is no reason to write about it to where nobody looks either.
    let layer = match format {
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_writer(writer)
            .log_internal_errors(false)
            .boxed(),
        LogFormat::Human { ansi } => fmt::layer()
            .with_ansi(ansi)
            .with_writer(writer)
            .log_internal_errors(false)
            .boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(filter.0))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use pinned_domain::ErrorChain;

    use super::*;
    use crate::scanner::MarkedError;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    // P1.5
    #[test]
    fn both_formats_show_the_causes_of_an_error() {
        let refused = io::Error::other("connection refused");
        let error = MarkedError(Box::new(refused));
        let text = "the durable store cannot be read: connection refused";
        for format in [LogFormat::Json, LogFormat::Human { ansi: false }] {
            let written = Written::default();
            let writer = written.clone();
            let subscriber = subscriber(LogFilter::default(), format, move || writer.clone());
            tracing::subscriber::with_default(subscriber, || {
                tracing::warn!(error = %ErrorChain(&error), "no luck");
            });
            let line = String::from_utf8(written.0.lock().clone()).expect("text");
            assert!(line.contains(text), "{line}");
        }
    }
}
