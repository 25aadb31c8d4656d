//! Why an exchange with a worker came to nothing.

use std::fmt;
use std::io;

/// No response came.
#[derive(Debug)]
pub struct ExchangeError {
    /// What happened.
    pub kind: ExchangeErrorKind,
    /// Whether some of the request may have reached the worker: such a one is never sent twice (P5.11).
    pub may_have_reached: bool,
    /// The cause.
    pub source: io::Error,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeErrorKind {
    /// No connection could be made: refused, no route.
    Unreachable,
    /// No connection was made in time.
    ConnectTimeout,
    /// The connection broke before a response came.
    Reset,
    /// What came back is not an HTTP/1.1 response.
    Malformed,
    /// The body of the request broke off: its sender went away.
    Body,
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ExchangeErrorKind::Unreachable => "the worker cannot be reached",
            ExchangeErrorKind::ConnectTimeout => "the worker did not accept a connection in time",
            ExchangeErrorKind::Reset => "the connection broke before the worker answered",
            ExchangeErrorKind::Malformed => "the worker did not answer in HTTP/1.1",
            ExchangeErrorKind::Body => "the body of the request broke off",
        })
    }
}

impl std::error::Error for ExchangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
