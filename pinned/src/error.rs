//! The errors of a worker, and errors in general.

use std::fmt;

/// Any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// The result of building or serving a worker.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a worker could not be built, started or served.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A setting is missing, malformed or contradicts another; the text says which and what is expected.
    Config(String),
    /// Two structs claim one namespace; the text names both, with file and line.
    DuplicateNamespace(String),
    /// The worker has started already (H11.14, H16.2).
    AlreadyStarted,
    /// The address could not be bound.
    Bind {
        /// Where.
        address: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Parts of the shutdown failed; all of it ran (H11.11).
    Shutdown(Vec<String>),
}

impl Error {
    pub(crate) fn config(text: impl Into<String>) -> Self {
        Self::Config(text.into())
    }

    pub(crate) fn option(option: &str, expectation: &str) -> Self {
        Self::Config(format!("`{option}` {expectation}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(text) | Self::DuplicateNamespace(text) => f.write_str(text),
            Self::AlreadyStarted => f.write_str("this worker has started already"),
            Self::Bind { address, .. } => write!(f, "cannot listen on {address}"),
            Self::Shutdown(failures) => {
                write!(f, "the shutdown failed in part: {}", failures.join("; "))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// An error and what caused it, outermost first.
pub(crate) fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}
