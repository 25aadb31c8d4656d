//! Entries taken for the item in hand (T6).

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::item::Item;
use super::{PersistentQueue, QueueError};

impl<T: Serialize + DeserializeOwned + Send + 'static> PersistentQueue<T> {
    /// Takes the first `count` entries for the item in hand (T6.1).
    ///
    /// They stay queued as far as the store knows, and are gone with the acknowledgement of that item; after a crash
    /// before that, they are back at the head.
    ///
    /// # Errors
    ///
    /// [`QueueError::TooFew`]; nothing is taken then.
    pub fn take_now(&mut self, count: usize) -> Result<Vec<T>, QueueError> {
        let available = self.items.len();
        if count > available {
            return Err(QueueError::TooFew {
                wanted: count,
                available,
            });
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        self.touch();
        let mut taken = Vec::with_capacity(count);
        for _ in 0..count {
            if let Some((value, held)) = self.remove_front() {
                self.taken.push_back(held);
                self.undo.took();
                taken.push(value);
            }
        }
        Ok(taken)
    }

    /// Takes every entry for the item in hand (T6.1).
    pub fn take_all(&mut self) -> Vec<T> {
        // There are as many as there are.
        self.take_now(self.items.len()).unwrap_or_default()
    }

    /// Puts the `count` entries that were taken last back at the head, in their order (T6.3).
    ///
    /// # Errors
    ///
    /// [`QueueError::TooFew`] when fewer are taken; nothing is put back then.
    pub fn untake(&mut self, count: usize) -> Result<(), QueueError> {
        let available = self.taken.len();
        if count > available {
            return Err(QueueError::TooFew {
                wanted: count,
                available,
            });
        }
        if count == 0 {
            return Ok(());
        }
        self.touch();
        let mut returned = 0;
        for _ in 0..count {
            let Some(held) = self.taken.pop_back() else {
                break;
            };
            self.undo.untook(held.clone());
            match Item::returned(held) {
                Ok(item) => {
                    self.put_front(item);
                    returned += 1;
                }
                // The segment fails, and the entry is back among the taken.
                Err(error) => {
                    self.refused.get_or_insert(error);
                    break;
                }
            }
        }
        self.layout.pushed_front(returned, &mut self.undo.layout);
        self.arrivals.notify_waiters();
        Ok(())
    }

    /// How many entries are taken.
    pub fn taken(&self) -> usize {
        self.taken.len()
    }

    pub(super) fn forget_takes(&mut self) {
        if !self.taken.is_empty() {
            self.touch();
            let taken = std::mem::take(&mut self.taken);
            self.undo.committed_takes(taken);
        }
    }

    /// Told when entries come.
    pub(crate) fn arrivals(&self) -> Arc<Notify> {
        Arc::clone(&self.arrivals)
    }
}
