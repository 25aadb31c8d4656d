//! A durable queue (T5, T6).
//!
//! | file | what |
//! |---|---|
//! | `item` | one entry: its text, its value, the key it was admitted under |
//! | `layout` | which entries stand in the tray's row, and which in rows of their own |
//! | `entry` | the JSON of the queue in the row |
//! | `undo` | taking the changes of a failed segment back |
//! | `takes` | what was taken for the item in hand |
//! | `keyed` | appends under a key |
//! | `source` | the queue as what its tray works through |
//! | `field` | the queue as a field |

mod entry;
mod field;
mod item;
mod keyed;
mod layout;
mod source;
mod takes;
#[cfg(test)]
mod tests;
mod undo;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::error::BoxError;
use crate::observable::{ObservableError, ObservableView};
use crate::tray::mirror::Mirror;
use item::{Held, Item};
use keyed::Keyed;
use layout::Layout;
pub use source::{DeclaredQueue, ItemQueue};
use undo::Undo;

/// An operation that a queue does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// More was asked for than there is (T6.1, T6.3).
    #[error("the queue has {available} of the {wanted} entries asked for")]
    TooFew {
        /// How many were asked for.
        wanted: usize,
        /// How many there are.
        available: usize,
    },
    /// Nothing can come before entries that are taken and may come back (T5.2).
    #[error("entries are taken and may come back: nothing can be put before the head until then")]
    TakesPending,
}

/// A queue that is kept in the state store, entry by entry as JSON.
///
/// Entries are added at the tail, and worked through from the head. Its changes of one segment are one write; however
/// long it is, what is written for an entry that comes at the tail or goes at the head stays small. A change elsewhere in
/// a queue of more than 64 entries may write it whole.
///
/// ```
/// use pinned::Tray;
/// use pinned::PersistentQueue;
///
/// #[derive(Tray)]
/// struct Mail { outgoing: PersistentQueue<String> }
///
/// impl Mail {
///     fn send(&mut self, letter: String) { self.outgoing.push(letter); }
/// }
/// ```
pub struct PersistentQueue<T> {
    items: VecDeque<Item<T>>,
    /// What was taken for the item in hand, still queued as far as the store knows.
    taken: VecDeque<Held>,
    layout: Layout,
    next_serial: u64,
    /// The entry that was handed to the tray's handler.
    delivered: Option<u64>,
    keyed: Option<Keyed>,
    undo: Undo<T>,
    changed: bool,
    /// A value that has no JSON form, or must not be queued: the segment fails.
    refused: Option<BoxError>,
    /// Told when entries come.
    arrivals: Arc<Notify>,
    mirror: Option<Mirror>,
}

impl<T: Serialize + DeserializeOwned + Send + 'static> PersistentQueue<T> {
    /// An empty queue.
    pub(crate) fn declared() -> Self {
        Self {
            items: VecDeque::new(),
            taken: VecDeque::new(),
            layout: Layout::default(),
            next_serial: 0,
            delivered: None,
            keyed: None,
            undo: Undo::default(),
            changed: false,
            refused: None,
            arrivals: Arc::new(Notify::new()),
            mirror: None,
        }
    }

    /// How many entries there are, without those that are taken.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The head.
    pub fn peek(&self) -> Option<&T> {
        self.get(0)
    }

    /// The entry at `index` from the head.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.items.get(index).map(|item| &item.value)
    }

    /// The entries from the head on.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        self.items.iter().map(|item| &item.value)
    }

    /// Adds `item` at the tail.
    ///
    /// One that has no JSON form fails the segment, and nothing of it stays.
    pub fn push(&mut self, item: T) {
        let Some(item) = self.admit(item) else {
            return;
        };
        self.touch();
        self.items.push_back(item);
        self.undo.pushed_back();
        self.layout.pushed_back(&mut self.undo.layout);
        self.arrivals.notify_waiters();
    }

    /// Adds `items` at the tail, in their order.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        for item in items {
            self.push(item);
        }
    }

    /// Adds `item` before the head.
    ///
    /// # Errors
    ///
    /// [`QueueError::TakesPending`] while entries are taken and others wait (T5.2). Under a keyed admission the segment
    /// fails (T13.7).
    pub fn push_front(&mut self, item: T) -> Result<(), QueueError> {
        if !self.taken.is_empty() && !self.items.is_empty() {
            return Err(QueueError::TakesPending);
        }
        if let Some(keyed) = &mut self.keyed {
            keyed.break_rule("a keyed admission appends; it cannot put anything before the head");
            return Ok(());
        }
        if let Some(item) = self.make(item) {
            self.touch();
            self.put_front(item);
            self.layout.pushed_front(1, &mut self.undo.layout);
            self.arrivals.notify_waiters();
        }
        Ok(())
    }

    /// Removes the head and gives it.
    pub fn pop_front(&mut self) -> Option<T> {
        if self.items.is_empty() {
            return None;
        }
        self.touch();
        self.remove_front().map(|(value, _)| value)
    }

    /// Removes the entry at the tail and gives it.
    pub fn pop_back(&mut self) -> Option<T> {
        self.remove(self.items.len().checked_sub(1)?)
    }

    /// Removes the entry at `index` from the head and gives it.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        if index == 0 {
            return self.pop_front();
        }
        self.items.get(index)?;
        self.touch();
        let (value, held) = self.items.remove(index)?.into_parts();
        self.undo.removed(index, held);
        self.layout
            .removed(index, self.items.len(), &mut self.undo.layout);
        Some(value)
    }

    /// Puts `item` in the place of the entry at `index`, and gives that; without one there, nothing changes.
    pub fn set(&mut self, index: usize, item: T) -> Option<T> {
        self.items.get(index)?;
        let mut item = self.make(item)?;
        self.touch();
        let slot = self.items.get_mut(index)?;
        // Still the same entry: whoever has it in hand acknowledges it.
        item.serial = slot.serial;
        let (value, held) = std::mem::replace(slot, item).into_parts();
        self.undo.replaced(index, held);
        self.layout
            .edited(index, self.items.len(), &mut self.undo.layout);
        Some(value)
    }

    /// Changes the entry at `index` in place; `None` without one there.
    pub fn edit<R>(&mut self, index: usize, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let held = self.items.get(index)?.held();
        self.touch();
        // Before the change: should it panic, what it left half done is taken back.
        self.undo.replaced(index, held);
        self.layout
            .edited(index, self.items.len(), &mut self.undo.layout);
        let item = self.items.get_mut(index)?;
        let outcome = change(&mut item.value);
        if let Err(error) = item.encode_anew() {
            self.refused.get_or_insert(error);
        }
        Some(outcome)
    }

    /// Removes every entry that is not taken.
    pub fn clear(&mut self) {
        self.assign([]);
    }

    /// Puts `items` in the place of every entry that is not taken; those stay ahead of them (T5.4).
    pub fn assign(&mut self, items: impl IntoIterator<Item = T>) {
        let items: VecDeque<Item<T>> = items
            .into_iter()
            .filter_map(|item| self.make(item))
            .collect();
        self.touch();
        // Before their values are dropped, which is the user's code.
        self.undo
            .assigned(self.items.iter().map(Item::held).collect());
        let before = std::mem::replace(&mut self.items, items);
        self.layout.rebuild(self.items.len(), &mut self.undo.layout);
        self.arrivals.notify_waiters();
        drop(before);
    }

    /// The entries as others may watch them, or mount them in an [`Observable`](crate::Observable) of their own (T5.6):
    /// each change shows when it stands. They cannot be changed through that (T5.7).
    ///
    /// # Errors
    ///
    /// An entry is none that an observable can hold, such as one with integers beyond 2^53 - 1.
    pub fn observe(&mut self) -> Result<ObservableView<Vec<T>>, ObservableError> {
        let mirror = match self.mirror.take() {
            Some(mirror) => mirror,
            None => Mirror::of(&*self)?,
        };
        Ok(self.mirror.insert(mirror).view())
    }

    fn touch(&mut self) {
        self.changed = true;
        self.undo.layout.keep_ends(&self.layout);
    }

    /// `value` as an entry; `None` when it must not be one, which fails the segment.
    fn make(&mut self, value: T) -> Option<Item<T>> {
        let serial = self.next_serial;
        match Item::new(value, None, serial) {
            Ok(item) => {
                self.next_serial += 1;
                Some(item)
            }
            Err(error) => {
                self.refused.get_or_insert(error);
                None
            }
        }
    }

    /// The layout is told of it by the caller.
    fn put_front(&mut self, item: Item<T>) {
        self.items.push_front(item);
        self.undo.pushed_front();
    }

    fn remove_front(&mut self) -> Option<(T, Held)> {
        let (value, held) = self.items.pop_front()?.into_parts();
        self.undo.popped_front(held.clone());
        self.layout.popped_front(&mut self.undo.layout);
        Some((value, held))
    }
}

/// As the list of its entries, without those that are taken, so that an answer may hold it.
impl<T: Serialize> Serialize for PersistentQueue<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.items.iter().map(|item| &item.value))
    }
}

impl<T: fmt::Debug> fmt::Debug for PersistentQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.items.iter().map(|item| &item.value);
        f.debug_struct("PersistentQueue")
            .field("items", &items.collect::<Vec<_>>())
            .field("taken", &self.taken.len())
            .finish()
    }
}
