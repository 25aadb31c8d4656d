//! The operator's drain, as acks echo it (W12).

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::metrics::control_failed;
use crate::domain::saturating_add;

/// How far a deadline may wander between acks without being a new one.
const JITTER: Duration = Duration::from_secs(1);

/// What was last acted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DrainEcho {
    /// `None`: not draining. `Some(None)`: draining for good.
    acted_on: Option<Option<Instant>>,
}

/// What an ack says of the drain, if that is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainNews {
    Begun(Option<Duration>),
    Revoked,
}

impl DrainEcho {
    /// Reads an ack; the caller acts on the news.
    pub(super) fn read(&mut self, ack: &Map<String, Value>, now: Instant) -> Option<DrainNews> {
        let draining = ack.get("draining")?.as_bool()?;
        let left = if draining { deadline(ack) } else { None };
        let target = draining.then(|| left.map(|left| saturating_add(now, left)));
        let same = match (self.acted_on, target) {
            (None, None) | (Some(None), Some(None)) => true,
            (Some(Some(before)), Some(Some(after))) => {
                let apart = if before > after {
                    before - after
                } else {
                    after - before
                };
                apart <= JITTER
            }
            _ => false,
        };
        if same {
            return None;
        }
        self.acted_on = target;
        Some(match target {
            Some(_) => DrainNews::Begun(left),
            None => DrainNews::Revoked,
        })
    }
}

/// What is left until the deadline; a malformed one is counted, and none.
fn deadline(ack: &Map<String, Value>) -> Option<Duration> {
    let value = ack.get("drainDeadline").filter(|value| !value.is_null())?;
    let left = value
        .as_f64()
        .filter(|seconds| *seconds >= 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    if left.is_none() {
        control_failed("server_draining", "malformed_deadline");
        tracing::error!(target: "pinned::fleet", deadline = %value, "malformed drain deadline in an ack");
    }
    left
}
