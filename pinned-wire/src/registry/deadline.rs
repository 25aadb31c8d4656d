//! A deadline, as operators and control messages write it.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest deadline that is taken: a hundred years.
pub const LONGEST_DEADLINE: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Seconds from when it was sent, or `null`.
///
/// What `null` means is the message's: a cordon for a drain, a revocation for a wind-down. It is never the same as a
/// member that is missing, which is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(pub Option<Duration>);

impl Deadline {
    /// So many seconds from now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pinned_wire::registry::Deadline;
    ///
    /// assert_eq!(serde_json::to_string(&Deadline::after(Duration::from_millis(1500))).unwrap(), "1.5");
    /// assert!(serde_json::from_str::<Deadline>("-1").is_err());
    /// ```
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        Self(Some(duration))
    }
}

impl Serialize for Deadline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_none(),
            Some(left) if left.subsec_nanos() == 0 => serializer.serialize_u64(left.as_secs()),
            Some(left) => serializer.serialize_f64(left.as_secs_f64()),
        }
    }
}

impl<'de> Deserialize<'de> for Deadline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecondsOrNull)
    }
}

struct SecondsOrNull;

impl Visitor<'_> for SecondsOrNull {
    type Value = Deadline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a deadline: seconds from 0 to {}, or null",
            LONGEST_DEADLINE.as_secs()
        )
    }

    fn visit_unit<E: Error>(self) -> Result<Deadline, E> {
        Ok(Deadline(None))
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Deadline, E> {
        let given = Duration::from_secs(seconds);
        if given > LONGEST_DEADLINE {
            return Err(E::invalid_value(Unexpected::Unsigned(seconds), &self));
        }
        Ok(Deadline(Some(given)))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Deadline, E> {
        match u64::try_from(seconds) {
            Ok(seconds) => self.visit_u64(seconds),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(seconds), &self)),
        }
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Deadline, E> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(given) if given <= LONGEST_DEADLINE => Ok(Deadline(Some(given))),
            _ => Err(E::invalid_value(Unexpected::Float(seconds), &self)),
        }
    }
}
