//! Reading what the scripts answer.

use redis::{FromRedisValue, Value};

use super::error::unexpected;
use crate::store::StoreError;

/// The parts of an answer, one after the other.
pub(super) struct Answer(std::vec::IntoIter<Value>);

impl Answer {
    /// An answer of several parts.
    pub(super) fn parts(value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(parts) => Ok(Self(parts.into_iter())),
            _ => Err(unexpected("a list was due")),
        }
    }

    /// The next part, as it is; nothing when there is none.
    pub(super) fn raw(&mut self) -> Value {
        self.0.next().unwrap_or(Value::Nil)
    }

    /// The next part.
    pub(super) fn next<T: FromRedisValue>(&mut self) -> Result<T, StoreError> {
        read(self.raw())
    }

    /// The next part, which has parts itself.
    pub(super) fn list(&mut self) -> Result<Vec<Value>, StoreError> {
        match self.raw() {
            Value::Array(parts) => Ok(parts),
            _ => Err(unexpected("a list was due")),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }
}

pub(super) fn read<T: FromRedisValue>(value: Value) -> Result<T, StoreError> {
    // The error of the client library shows the value, which may have a secret in it.
    redis::from_redis_value(value)
        .map_err(|_| unexpected(&format!("{} was due", std::any::type_name::<T>())))
}

/// The one part of an answer to one command.
pub(super) fn only<T: FromRedisValue>(answers: Vec<Value>) -> Result<T, StoreError> {
    read(answers.into_iter().next().unwrap_or(Value::Nil))
}
