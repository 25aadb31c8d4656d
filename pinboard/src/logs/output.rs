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
