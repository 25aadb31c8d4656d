//! What an ack grants: for how long, under which orders, with which messages.

use std::time::Duration;

use pinned_wire::registry::{ControlMessage, Deadline, HeartbeatAck, RegisterAck, WindDown};

use crate::store::{Drain, QueuedMessage, SessionId};

/// What the confirmations of one heartbeat may take of its 1 MiB, in bytes: the next heartbeat of a worker confirms all messages of
/// an ack at once, and one that was too long for the registry would never confirm any.
const ACK_BYTES: usize = 768 << 10;

/// What a confirmation takes beside the id of its message: the quotes and the comma.
const AROUND_ACK: usize = 3;

/// What a worker is granted, whichever way it asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grant {
    expires_in: Duration,
    draining: bool,
    drain_left: Option<Duration>,
}

impl Grant {
    /// A lease of `ttl`, cut to what is left until the operator's deadline and the worker's own (P2.7).
    pub(crate) fn new(ttl: Duration, drain: Option<Drain>, own: Option<Duration>) -> Self {
        let drain_left = drain.and_then(left_until);
        let expires_in = [drain_left, own]
            .into_iter()
            .flatten()
            .fold(ttl, Duration::min);
        Self {
            expires_in,
            draining: drain.is_some(),
            drain_left,
        }
    }

    /// The same, told `waited` later. The lease is counted from when the worker asked, and stays; the deadline is counted from
    /// when it is told.
    pub(crate) fn told_after(mut self, waited: Duration) -> Self {
        self.drain_left = self.drain_left.map(|left| left.saturating_sub(waited));
        self
    }

    pub(crate) fn register_ack(self, session: &SessionId) -> RegisterAck {
        RegisterAck {
            session_id: session.as_str().to_owned(),
            expires_in_ms: millis(self.expires_in),
            draining: self.draining,
            drain_deadline: self.drain_left.map(|left| left.as_secs_f64()),
            duplicates: Vec::new(),
        }
    }

    /// An ack with as many messages as one heartbeat can confirm, the oldest first (P2.10).
    ///
    /// A fence may pass once its deadline is a lease TTL past, because by then the holder has been told or has no lease. So a worker
    /// that has not been told of an order whose deadline has come is granted nothing until it is.
    pub(crate) fn heartbeat_ack(self, messages: Vec<QueuedMessage>) -> HeartbeatAck {
        let mut room = ACK_BYTES;
        let told = messages
            .iter()
            .take_while(|message| {
                let taken = room.checked_sub(message.id.len() + AROUND_ACK);
                room = taken.unwrap_or(0);
                taken.is_some()
            })
            .count();
        let overdue = messages[told..]
            .iter()
            .any(|message| message.body.deadline == Some(Duration::ZERO));
        HeartbeatAck {
            expires_in_ms: if overdue { 0 } else { millis(self.expires_in) },
            draining: self.draining,
            drain_deadline: self.drain_left.map(|left| left.as_secs_f64()),
            messages: messages.into_iter().take(told).map(wind_down).collect(),
        }
    }
}

/// What is left until the deadline of a drain; a cordon has none.
pub(crate) fn left_until(drain: Drain) -> Option<Duration> {
    match drain {
        Drain::Cordon => None,
        Drain::By { left } => Some(left),
    }
}

fn wind_down(message: QueuedMessage) -> ControlMessage {
    ControlMessage::WindDown(WindDown {
        msg_id: Some(message.id),
        ns: Some(message.body.key.ns.to_string()),
        id: message.body.key.id.to_string(),
        deadline: Deadline(message.body.deadline),
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MessageBody, PlacementKey};

    const TTL: Duration = Duration::from_secs(15);

    fn granted(drain: Option<Drain>, own: Option<Duration>) -> HeartbeatAck {
        Grant::new(TTL, drain, own).heartbeat_ack(Vec::new())
    }

    fn message(id: impl Into<String>, deadline: Option<u64>) -> QueuedMessage {
        QueuedMessage {
            id: id.into(),
            body: MessageBody {
                key: PlacementKey::single("/rooms", "blue"),
                deadline: deadline.map(Duration::from_secs),
            },
        }
    }

    // P2.7
    #[test]
    fn a_grant_is_cut_to_what_is_left_until_the_drain() {
        let by = |left| {
            Some(Drain::By {
                left: Duration::from_millis(left),
            })
        };
        assert_eq!(granted(None, None).expires_in_ms, 15_000);
        assert_eq!(granted(Some(Drain::Cordon), None).expires_in_ms, 15_000);
        assert_eq!(granted(by(20_000), None).expires_in_ms, 15_000);
        assert_eq!(granted(by(4_500), None).expires_in_ms, 4_500);
        assert_eq!(
            granted(by(4_500), Some(Duration::from_secs(2))).expires_in_ms,
            2_000
        );
        assert_eq!(granted(by(0), None).expires_in_ms, 0);

        let ack = granted(by(4_500), None);
        assert_eq!((ack.draining, ack.drain_deadline), (true, Some(4.5)));
        let ack = granted(Some(Drain::Cordon), None);
        assert_eq!((ack.draining, ack.drain_deadline), (true, None));
        // The worker's own drain is its own business (W12.4).
        assert!(!granted(None, Some(Duration::ZERO)).draining);
    }

    #[test]
    fn a_deadline_that_is_told_late_has_run_on() {
        let drain = Drain::By {
            left: Duration::from_secs(10),
        };
        let late = Grant::new(TTL, Some(drain), None).told_after(Duration::from_secs(3));
        let ack = late.register_ack(&SessionId::new("s"));
        assert_eq!((ack.expires_in_ms, ack.drain_deadline), (10_000, Some(7.0)));
    }

    // P2.10
    #[test]
    fn no_more_messages_are_told_than_one_heartbeat_can_confirm() {
        let few = vec![message("1", Some(15)), message("2", None)];
        assert_eq!(
            Grant::new(TTL, None, None)
                .heartbeat_ack(few)
                .messages
                .len(),
            2
        );

        let many: Vec<_> = (0..20_000)
            .map(|at| message(format!("{at:097}"), Some(15)))
            .collect();
        let ack = Grant::new(TTL, None, None).heartbeat_ack(many);
        assert_eq!(ack.messages.len(), ACK_BYTES / 100);
        assert_eq!(ack.expires_in_ms, 15_000);

        let late: Vec<_> = (0..20_000)
            .map(|at| message(format!("{at:097}"), Some(0)))
            .collect();
        assert_eq!(
            Grant::new(TTL, None, None)
                .heartbeat_ack(late)
                .expires_in_ms,
            0
        );
    }
}
