//! The record of one outgoing call (T7).

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::entries::EntryText;
use super::field::{
    Changes, DeclaredField, Field, Hydrated, Keepable, encode, encode_kept, same_json,
};
use crate::error::BoxError;

/// Remembers what is being sent to the outside, and how often that was tried, across crashes.
///
/// ```
/// # use pinned::PersistentOutbox;
/// # fn demo(outbox: &mut PersistentOutbox<String>, charge: &String) {
/// // 1 the first time; 2 when a crash came before the ack, and so on: what makes a good idempotency key.
/// let attempt = outbox.dispatch(charge.clone());
/// // ... send it ...
/// outbox.ack();
/// assert_eq!(outbox.attempt(), 0);
/// # }
/// ```
pub struct PersistentOutbox<T> {
    record: Option<Sent<T>>,
    committed: Option<EntryText>,
    /// The entry as it is to be, once it was asked for.
    pending: Option<Option<EntryText>>,
    changed: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent<T> {
    item: T,
    attempt: u64,
}

impl<T: Serialize + DeserializeOwned + Send + 'static> PersistentOutbox<T> {
    /// An empty outbox.
    pub(crate) fn declared() -> Self {
        Self {
            record: None,
            committed: None,
            pending: None,
            changed: false,
        }
    }

    /// Records that `item` is about to be sent, and gives the attempt: one more than before if it is the item that was
    /// recorded last, else 1 (T7.1).
    ///
    /// Items are compared by their JSON.
    pub fn dispatch(&mut self, item: T) -> u64 {
        let again =
            self.record
                .as_ref()
                .is_some_and(|sent| match (encode(&sent.item), encode(&item)) {
                    (Ok(one), Ok(other)) => same_json(&one, &other),
                    _ => false,
                });
        let attempt = match &self.record {
            Some(sent) if again => sent.attempt.saturating_add(1),
            _ => 1,
        };
        self.record = Some(Sent { item, attempt });
        self.changed = true;
        attempt
    }

    /// How often the recorded item was tried; 0 when there is none (T7.2).
    pub fn attempt(&self) -> u64 {
        self.record.as_ref().map_or(0, |sent| sent.attempt)
    }

    /// What is recorded.
    pub fn item(&self) -> Option<&T> {
        self.record.as_ref().map(|sent| &sent.item)
    }

    /// Clears the record and gives the item; `None` when there was none (T7.2).
    pub fn ack(&mut self) -> Option<T> {
        let sent = self.record.take()?;
        self.changed = true;
        Some(sent.item)
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Field for PersistentOutbox<T> {
    fn hydrate(&mut self, stored: Option<&RawValue>) -> Result<Hydrated, BoxError> {
        if let Some(stored) = stored {
            let sent: Sent<T> = serde_json::from_str(stored.get())?;
            if sent.attempt == 0 {
                return Err("`attempt` is at least 1".into());
            }
            self.record = Some(sent);
            self.committed = Some(stored.get().into());
        }
        Ok(Hydrated::default())
    }

    fn changes(&mut self) -> Result<Changes, BoxError> {
        if !self.changed {
            return Ok(Changes::default());
        }
        let entry = self.record.as_ref().map(encode_kept).transpose()?;
        self.pending = (entry != self.committed).then_some(entry);
        Ok(Changes {
            entry: self.pending.clone(),
            ..Changes::default()
        })
    }

    fn commit(&mut self) {
        self.changed = false;
        if let Some(entry) = self.pending.take() {
            self.committed = entry;
        }
    }

    fn rollback(&mut self) -> Result<(), BoxError> {
        self.pending = None;
        if self.changed {
            let committed = self.committed.as_deref();
            self.record = committed.map(serde_json::from_str).transpose()?;
            self.changed = false;
        }
        Ok(())
    }
}

impl<T: Keepable> DeclaredField for PersistentOutbox<T> {
    fn declared() -> Self {
        Self::declared()
    }

    fn as_field(&mut self) -> &mut dyn Field {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for PersistentOutbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistentOutbox")
            .field("item", &self.record.as_ref().map(|sent| &sent.item))
            .field(
                "attempt",
                &self.record.as_ref().map_or(0, |sent| sent.attempt),
            )
            .finish()
    }
}
