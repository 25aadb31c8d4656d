//! An error with its causes.

use std::error::Error;
use std::fmt;

/// An error followed by its causes, which say more than it does: `the store cannot be read: connection refused`.
///
/// Errors are logged as this text. Given to `tracing` as an error, lines for people would have the causes, and JSON would not.
///
/// ```
/// use pinned_domain::ErrorChain;
/// # use std::{error::Error, fmt, io};
/// # #[derive(Debug)] struct NotRead(io::Error);
/// # impl fmt::Display for NotRead {
/// #     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("the store cannot be read") }
/// # }
/// # impl Error for NotRead {
/// #     fn source(&self) -> Option<&(dyn Error + 'static)> { Some(&self.0) }
/// # }
///
/// let error = NotRead(io::Error::other("connection refused"));
/// assert_eq!(ErrorChain(&error).to_string(), "the store cannot be read: connection refused");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ErrorChain<'a>(pub &'a dyn Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
