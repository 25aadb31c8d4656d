//! What went wrong in a transaction, and what may be done about it (D11).

use std::io;
use std::sync::Arc;

use tokio_postgres::Error as PgError;
use tokio_postgres::error::{Severity, SqlState};

use crate::durability::StoreError;
use crate::error::BoxError;

/// No connection was to be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("cannot connect to PostgreSQL")]
    Refused(#[source] BoxError),
    #[error("PostgreSQL did not answer within 10 s")]
    TimedOut,
    #[error("the connection is closed")]
    Closed,
}

impl From<PgError> for DialError {
    fn from(error: PgError) -> Self {
        Self::Refused(without_values(error))
    }
}

/// An error of the server, without its details: those quote whole rows, which are the user's.
#[derive(Debug, thiserror::Error)]
#[error("{message} (SQLSTATE {code})")]
struct ServerError {
    message: String,
    code: String,
}

fn without_values(error: PgError) -> BoxError {
    match error.as_db_error() {
        Some(verdict) => Box::new(ServerError {
            message: verdict.message().to_owned(),
            code: verdict.code().code().to_owned(),
        }),
        None => Box::new(error),
    }
}

/// Why a transaction was not carried through.
#[derive(Debug)]
pub(super) enum Failure {
    /// The answer to the operation: a lost fence, an argument that is none.
    Refused(StoreError),
    /// The hook failed.
    Hook(BoxError),
    /// A statement failed.
    Statement(PgError),
    /// The deadline passed; the connection is gone.
    Deadline,
}

impl From<PgError> for Failure {
    fn from(error: PgError) -> Self {
        Self::Statement(error)
    }
}

/// The deadline of D11.1 passed.
#[derive(Debug, thiserror::Error)]
#[error("the transaction did not end within its deadline")]
struct DeadlinePassed;

/// The hook's error, told apart from the store's own.
#[derive(Debug, thiserror::Error)]
#[error("the transaction hook failed")]
struct HookFailed(#[source] BoxError);

/// What a [`Failure`] means for the connection and for a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The connection or its server is gone: another connection may do better.
    Broken,
    /// The server gave up for now, and the connection is well: a lock or statement timeout, a deadlock, no memory.
    Busy,
    /// The same again would fail again.
    Permanent,
}

impl Failure {
    pub(super) fn class(&self) -> Class {
        match self {
            Self::Refused(_) | Self::Hook(_) => Class::Permanent,
            Self::Deadline => Class::Broken,
            Self::Statement(error) => classify(error),
        }
    }

    /// Whether it is the server's verdict on the values of this very operation.
    pub(super) fn blames_values(&self) -> bool {
        match self {
            Self::Statement(error) => error.code().is_some_and(is_about_values),
            _ => false,
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error,
            Failure::Hook(error) => Self::failed(HookFailed(error)),
            Failure::Deadline => Self::failed(DeadlinePassed),
            Failure::Statement(error) => match error.as_db_error() {
                Some(verdict) if is_about_values(verdict.code()) => {
                    Self::Invalid(verdict.message().to_owned())
                }
                _ => Self::Failed(without_values(error)),
            },
        }
    }
}

impl Failure {
    /// As the outcome of an operation that may or may not have happened.
    pub(super) fn of_unknown_outcome(self) -> StoreError {
        match self {
            Self::Statement(error) => StoreError::Failed(without_values(error)),
            other => other.into(),
        }
    }
}

fn classify(error: &PgError) -> Class {
    let Some(verdict) = error.as_db_error() else {
        // Without a verdict of the server either the link is at fault, or what was sent could not be encoded.
        let io = std::error::Error::source(error).is_some_and(|source| source.is::<io::Error>());
        return if error.is_closed() || io {
            Class::Broken
        } else {
            Class::Permanent
        };
    };
    if matches!(
        verdict.parsed_severity(),
        Some(Severity::Fatal | Severity::Panic)
    ) {
        return Class::Broken;
    }
    match verdict.code() {
        // The primary that this connection led to is none any more.
        code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Class::Broken,
        code if *code == SqlState::LOCK_NOT_AVAILABLE => Class::Busy,
        code if *code == SqlState::QUERY_CANCELED => Class::Busy,
        code => match code.code().get(..2) {
            // Connection exception; operator intervention.
            Some("08" | "57") => Class::Broken,
            // Transaction rollback; insufficient resources; system error.
            Some("40" | "53" | "58") => Class::Busy,
            _ => Class::Permanent,
        },
    }
}

/// Data exception, or a limit such as that of an index entry: the values cannot be stored (D9.10).
fn is_about_values(code: &SqlState) -> bool {
    matches!(code.code().get(..2), Some("22" | "54"))
}

/// One error for all members of a group.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct SharedError(Arc<dyn std::error::Error + Send + Sync>);

impl SharedError {
    pub(super) fn new(error: StoreError) -> Self {
        Self(match error {
            StoreError::Failed(cause) => cause.into(),
            other => Arc::new(other),
        })
    }
}
