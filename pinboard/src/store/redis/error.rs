//! What the errors of Redis mean here.

use redis::{ErrorKind, RedisError, ServerError, ServerErrorKind};

use super::url::Address;
use crate::store::StoreError;

/// What one server did not do.
///
/// Nothing of what a server said to a login is in it: old servers repeat the password.
#[derive(Clone, Debug, thiserror::Error)]
#[error("Redis at {address}: {what}")]
pub(super) struct Failure {
    address: Address,
    what: String,
    /// Whether trying again later may help.
    transient: bool,
}

impl Failure {
    /// Trying again later may help.
    pub(super) fn away(address: &Address, what: impl Into<String>) -> Self {
        Self {
            address: address.clone(),
            what: what.into(),
            transient: true,
        }
    }

    /// Trying again is no use.
    pub(super) fn unfit(address: &Address, what: impl Into<String>) -> Self {
        Self {
            transient: false,
            ..Self::away(address, what)
        }
    }

    pub(super) fn is_transient(&self) -> bool {
        self.transient
    }

    pub(super) fn timed_out(address: &Address) -> Self {
        Self::away(address, "no answer in time")
    }

    /// An error of the connection, or an answer that cannot be read.
    pub(super) fn of_connection(address: &Address, error: &RedisError) -> Self {
        match error.kind() {
            ErrorKind::Io => Self::away(address, error.to_string()),
            _ => Self::away(address, error.category()),
        }
    }

    /// What came of the first words on a connection: protocol, login, database.
    pub(super) fn of_login(address: &Address, error: &RedisError) -> Self {
        match (error.kind(), error.code()) {
            (ErrorKind::Io, _) => Self::away(address, error.to_string()),
            (ErrorKind::RESP3NotSupported, _) => {
                Self::unfit(address, "it is older than Redis 7.0, which is needed")
            }
            (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH" | "NOPERM")) => {
                Self::unfit(address, "it refuses the user name or the password")
            }
            (ErrorKind::Server(ServerErrorKind::ResponseError), _) => Self::unfit(
                address,
                "it refuses the login or the database; Redis 7.0 or later is needed",
            ),
            (_, Some(code)) => Self::away(address, format!("it answers {code}")),
            (_, None) => Self::away(address, error.category()),
        }
    }

    /// An error that the server answered to something else.
    pub(super) fn of_answer(address: &Address, error: &ServerError) -> Self {
        let what = match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        };
        let transient = !matches!(
            error.code(),
            "ERR" | "WRONGTYPE" | "NOAUTH" | "NOPERM" | "WRONGPASS" | "NOPROTO" | "CROSSSLOT"
        );
        Self {
            address: address.clone(),
            what,
            transient,
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        if failure.transient {
            Self::unavailable(failure)
        } else {
            Self::Unusable(failure.to_string())
        }
    }
}

/// Redis answered what the scripts never do.
pub(super) fn unexpected(error: &(impl std::fmt::Display + ?Sized)) -> StoreError {
    StoreError::Unusable(format!("Redis answered something unexpected: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address {
            host: "localhost".to_owned(),
            port: 6379,
        }
    }

    fn answer(text: &str) -> Result<redis::Value, RedisError> {
        redis::parse_redis_value(format!("-{text}\r\n").as_bytes())
            .and_then(redis::Value::extract_error)
    }

    #[test]
    fn what_may_pass_is_told_from_what_does_not() {
        for (text, transient) in [
            ("LOADING Redis is loading the dataset in memory", true),
            (
                "READONLY You can't write against a read only replica.",
                true,
            ),
            ("CLUSTERDOWN The cluster is down", true),
            (
                "TRYAGAIN Multiple keys request during rehashing of slot",
                true,
            ),
            ("ASK 7 127.0.0.1:7001", true),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                true,
            ),
            ("BUSY Redis is busy running a script.", true),
            ("MISCONF Redis is configured to save RDB snapshots", true),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                false,
            ),
            ("ERR unknown command 'EVALSHA'", false),
            (
                "NOPERM this user has no permissions to run the 'evalsha' command",
                false,
            ),
        ] {
            let error = answer(text).expect_err("it is an error");
            let error = ServerError::try_from(error).expect("of the server");
            let error = StoreError::from(Failure::of_answer(&address(), &error));
            assert_eq!(error.is_transient(), transient, "{text}: {error:?}");
        }
    }

    #[test]
    fn what_is_said_to_a_login_is_not_repeated() {
        for text in [
            "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 'sesame'",
            "WRONGPASS invalid username-password pair sesame",
            "NOPERM sesame",
            "LOADING sesame",
        ] {
            let error = answer(text).expect_err("it is an error");
            let failure = Failure::of_login(&address(), &error);
            assert!(
                !format!("{failure} {failure:?}").contains("sesame"),
                "{failure:?}"
            );
        }
    }
}
