//! Control messages of one session (P2.10).

use std::collections::BTreeMap;
use std::time::Duration;

use ahash::AHashMap;
use tokio::time::Instant;

use crate::store::{MessageBody, PlacementKey, QueuedMessage};

/// What a session has not confirmed yet. At most one for each id.
#[derive(Clone, Default)]
pub(super) struct Messages {
    latest: u64,
    queue: BTreeMap<u64, Message>,
    by_key: AHashMap<PlacementKey, u64>,
}

#[derive(Clone)]
struct Message {
    key: PlacementKey,
    deadline: Option<Instant>,
}

impl Messages {
    /// Puts a message at the end, in place of an earlier one for the same id.
    pub(super) fn push(&mut self, body: MessageBody, now: Instant) {
        self.latest += 1;
        if let Some(earlier) = self.by_key.insert(body.key.clone(), self.latest) {
            self.queue.remove(&earlier);
        }
        let deadline = body.deadline;
        let message = Message {
            key: body.key,
            deadline: deadline.map(|left| pinned_domain::saturating_add(now, left)),
        };
        self.queue.insert(self.latest, message);
    }

    /// Drops the message that is confirmed; an id that was never given confirms nothing.
    pub(super) fn confirm(&mut self, id: &str) {
        let message = id.parse().ok().and_then(|id| self.queue.remove(&id));
        if let Some(message) = message {
            self.by_key.remove(&message.key);
        }
    }

    /// What is left, in order.
    pub(super) fn read(&self, now: Instant) -> Vec<QueuedMessage> {
        let left = |deadline: Instant| -> Duration { deadline.saturating_duration_since(now) };
        self.queue
            .iter()
            .map(|(id, message)| QueuedMessage {
                id: id.to_string(),
                body: MessageBody {
                    key: message.key.clone(),
                    deadline: message.deadline.map(left),
                },
            })
            .collect()
    }
}
