//! An error with its causes.

use std::error::Error;
use std::fmt;

/// An error with its causes, which say more than it does: `the durable store cannot be read: error connecting to server: ...`.
///
/// Errors are logged as this text. Given to `tracing` as an error, lines for people would have the causes, and JSON would not.
pub(crate) struct Causes<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Causes<'_> {
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

#[cfg(test)]
mod tests {
    use super::Causes;
    use crate::logs::{LogFilter, LogFormat, subscriber};
    use crate::scanner::MarkedError;
    use parking_lot::Mutex;
    use std::io;
    use std::sync::Arc;

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
                tracing::warn!(error = %Causes(&error), "no luck");
            });
            let line = String::from_utf8(written.0.lock().clone()).expect("text");
            assert!(line.contains(text), "{line}");
        }
    }
}
