//! What is logged.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// What is logged (`LOG_LEVEL`); `info` unless told otherwise.
///
/// ```
/// use pinboard::logs::LogFilter;
///
/// assert!(LogFilter::parse("info,pinboard::scanner=debug").is_some());
/// assert!(LogFilter::parse("verbose").is_none());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LogFilter(pub(super) Targets);

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
