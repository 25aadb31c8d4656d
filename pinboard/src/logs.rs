//! What a node says of itself: one JSON object a line on standard output, or lines for people where that is a terminal (P1.5).
//!
//! Hostname and env are fields of a line, never labels of a metric; tokens, secrets, cookies and attestations are in neither.

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

/// What is logged (`LOG_LEVEL`); `info` unless told otherwise.
///
/// ```
/// use pinboard::logs::LogFilter;
///
/// assert!(LogFilter::parse("info,pinboard::scanner=debug").is_some());
/// assert!(LogFilter::parse("verbose").is_none());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LogFilter(Targets);

impl LogFilter {
    /// Reads a level, or directives `TARGET=LEVEL` and at most one level for the rest, with commas between. `None` when it is
    /// something else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut targets = Targets::new();
        let mut default = None;
        for directive in text.split(',').map(str::trim) {
            match directive.split_once('=') {
                Some((target, level)) => {
                    let named = !target.is_empty()
                        && target
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b":_-".contains(&byte));
                    targets = targets.with_target(named.then_some(target)?, self::level(level)?);
                }
                // Not left to the crate's own parser, which takes any other word for the name of a target.
                None => {
                    let level = self::level(directive)?;
                    if default.replace(level).is_some() {
                        return None;
                    }
                }
            }
        }
        Some(Self(
            targets.with_default(default.unwrap_or(LevelFilter::INFO)),
        ))
    }
}

fn level(text: &str) -> Option<LevelFilter> {
    [
        LevelFilter::OFF,
        LevelFilter::ERROR,
        LevelFilter::WARN,
        LevelFilter::INFO,
        LevelFilter::DEBUG,
        LevelFilter::TRACE,
    ]
    .into_iter()
    .find(|level| level.to_string().eq_ignore_ascii_case(text))
}

impl Default for LogFilter {
    fn default() -> Self {
        Self(Targets::new().with_default(LevelFilter::INFO))
    }
}

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
    use super::*;

    #[test]
    fn a_filter_is_levels_and_targets_and_nothing_else() {
        for text in [
            "off",
            "INFO",
            "warn,pinboard::proxy=trace",
            "a=debug, b=info",
        ] {
            assert!(LogFilter::parse(text).is_some(), "{text}");
        }
        for text in [
            "",
            "verbose",
            "info,debug",
            "a=",
            "=info",
            "a=loud",
            "a[b]=info",
            "info,",
        ] {
            assert!(LogFilter::parse(text).is_none(), "{text}");
        }
        assert_eq!(LogFilter::parse("info"), Some(LogFilter::default()));
    }
}
