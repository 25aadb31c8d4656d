//! The queue as what its tray works through: the head is the item in hand, and is popped at its acknowledgement.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::PersistentQueue;
use crate::error::BoxError;

impl<T: Serialize + DeserializeOwned + Send + 'static> PersistentQueue<T> {
    /// The head, for the handler; it stays queued.
    #[doc(hidden)]
    pub fn source_next(&mut self) -> Result<Option<T>, BoxError> {
        let Some(item) = self.items.front() else {
            self.delivered = None;
            return Ok(None);
        };
        self.delivered = Some(item.serial);
        let held = super::item::Held {
            text: std::sync::Arc::clone(&item.text),
            key: None,
            serial: item.serial,
        };
        held.read().map(Some)
    }

    /// The item in hand was handled: it is queued no more, wherever it stands by now.
    #[doc(hidden)]
    pub fn source_ack(&mut self) {
        let Some(serial) = self.delivered.take() else {
            return;
        };
        if let Some(index) = self.items.iter().position(|item| item.serial == serial) {
            self.remove(index);
        }
    }
}
