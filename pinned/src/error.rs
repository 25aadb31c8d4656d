//! The errors of a worker, and errors in general.

use std::fmt;

pub(crate) use pinned_domain::ErrorChain;

/// Any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// The result of building or serving a worker.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a worker could not be built, started or served.
///
/// `Debug` shows the text and its causes, because that is what `fn main() -> pinned::Result<()>` prints.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is missing, malformed or contradicts another; the text says which and what is expected.
    #[error("{0}")]
    Config(String),
    /// Two structs claim one namespace; the text names both, with file and line.
    #[error("{0}")]
    DuplicateNamespace(String),
    /// The worker has started already (H11.14, H16.2).
    #[error("this worker has started already")]
    AlreadyStarted,
    /// The address could not be bound.
    #[error("cannot listen on {address} (`PORT` and `BIND` choose another)")]
    Bind {
        /// Where.
        address: String,
        /// Why not.
        source: std::io::Error,
    },
    /// SIGTERM and SIGINT cannot be listened for, and without them a worker cannot drain.
    #[error("cannot listen for SIGTERM and SIGINT")]
    Signals(#[source] std::io::Error),
    /// The state store could not be opened, or may not be used.
    #[error("the state store cannot be used")]
    Store(#[from] crate::durability::StoreError),
    /// Parts of the shutdown failed; all of it ran (H11.11).
    #[error("the shutdown failed in part: {}", .0.join("; "))]
    Shutdown(Vec<String>),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
}

impl Error {
    pub(crate) fn config(text: impl Into<String>) -> Self {
        Self::Config(text.into())
    }

    pub(crate) fn option(option: &str, expectation: &str) -> Self {
        Self::Config(format!("`{option}` {expectation}"))
    }
}

/// An error and what caused it, outermost first.
pub(crate) fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_main_prints_is_the_text_and_its_causes() {
        let error = Error::Bind {
            address: "0.0.0.0:80".to_owned(),
            source: std::io::Error::other("taken"),
        };
        assert_eq!(
            format!("{error:?}"),
            "cannot listen on 0.0.0.0:80 (`PORT` and `BIND` choose another): taken"
        );
        let error = Error::config("PORT is \"x\"");
        assert_eq!(format!("{error:?}"), "PORT is \"x\"");
    }
}
