//! The queue as what its tray works through: the head is the item in hand, and is popped at its acknowledgement.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::PersistentQueue;
use crate::error::BoxError;
use crate::tray::field::{Field, Keepable};

/// A field that may give its tray the items: [`PersistentQueue`], under whatever name.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives a tray no items",
    label = "not a `PersistentQueue<T>`",
    note = "put `#[tray(items)]` before a `PersistentQueue<T>`, or `#[tray(source)]` on the struct and implement \
            `TraySource`"
)]
pub trait ItemQueue {
    /// What the tray's handler is given.
    type Item: Send + 'static;
}

impl<T: Send + 'static> ItemQueue for PersistentQueue<T> {
    type Item = T;
}

/// The same as its tray declares it and works through it: all by one trait, so that whatever is wrong with its type is
/// told once.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives a tray no items",
    label = "not a `PersistentQueue<T>`",
    note = "put `#[tray(items)]` before a `PersistentQueue<T>`, or `#[tray(source)]` on the struct and implement \
            `TraySource`"
)]
pub trait DeclaredQueue<T> {
    /// The field of a new row.
    fn declared() -> Self;

    /// The field without its type.
    fn as_field(&mut self) -> &mut dyn Field;

    /// The item in hand.
    fn next_item(&mut self) -> Result<Option<T>, BoxError>;

    /// It was handled.
    fn ack_item(&mut self);
}

impl<T: Keepable> DeclaredQueue<T> for PersistentQueue<T> {
    fn declared() -> Self {
        Self::declared()
    }

    fn as_field(&mut self) -> &mut dyn Field {
        self
    }

    fn next_item(&mut self) -> Result<Option<T>, BoxError> {
        self.source_next()
    }

    fn ack_item(&mut self) {
        self.source_ack();
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> PersistentQueue<T> {
    /// The head, for the handler; it stays queued.
    pub(crate) fn source_next(&mut self) -> Result<Option<T>, BoxError> {
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
    pub(crate) fn source_ack(&mut self) {
        let Some(serial) = self.delivered.take() else {
            return;
        };
        if let Some(index) = self.items.iter().position(|item| item.serial == serial) {
            self.remove(index);
        }
    }
}
