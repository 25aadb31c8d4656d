//! Telling nodes what to forget (P5.7).

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::store::{Invalidation, PlacementKey};

/// How many invalidations wait for a node before it is told to forget everything.
const WAITING: usize = 4_096;

/// The handle of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HandleId(pub(super) u64);

/// The nodes that listen.
#[derive(Default)]
pub(super) struct Watchers {
    listeners: BTreeMap<HandleId, Listener>,
}

/// Who has read a row since it last changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers(Vec<HandleId>);

/// A node that listens.
struct Listener {
    queue: mpsc::Sender<Invalidation>,
    /// The last place in the queue, kept for [`Invalidation::Everything`]; taken when that has been sent.
    last: Option<mpsc::OwnedPermit<Invalidation>>,
}

impl Watchers {
    /// Begins to tell `handle`.
    pub(super) fn listen(&mut self, handle: HandleId) -> mpsc::Receiver<Invalidation> {
        let (queue, told) = mpsc::channel(WAITING + 1);
        let last = queue.clone().try_reserve_owned().ok();
        self.listeners.insert(handle, Listener { queue, last });
        told
    }

    /// Remembers that `handle` has read a row.
    pub(super) fn has_read(&self, handle: HandleId, readers: &mut Readers) {
        if self.listeners.contains_key(&handle) && !readers.0.contains(&handle) {
            readers.0.push(handle);
        }
    }

    /// Tells those who have read the row of `key` that it has changed; `except` made the change and knows what became
    /// of it.
    pub(super) fn changed(
        &mut self,
        key: &PlacementKey,
        readers: Readers,
        except: Option<HandleId>,
    ) {
        for reader in readers.0 {
            if Some(reader) == except {
                continue;
            }
            if let Some(listener) = self.listeners.get_mut(&reader)
                && listener.tell(key).is_gone()
            {
                self.listeners.remove(&reader);
            }
        }
    }

    /// Tells everybody to forget everything.
    pub(super) fn all_changed(&mut self) {
        self.listeners
            .retain(|_, listener| !listener.tell_everything().is_gone());
    }
}

/// Whether anybody is still there to be told.
#[must_use]
enum Told {
    Told,
    Gone,
}

impl Told {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}

impl Listener {
    fn tell(&mut self, key: &PlacementKey) -> Told {
        if !self.has_last() {
            // The queue is full, and ends with `Everything`, which covers this as well.
            return self.told();
        }
        match self.queue.try_send(Invalidation::Row(key.clone())) {
            Ok(()) => Told::Told,
            Err(TrySendError::Full(_)) => self.tell_everything(),
            Err(TrySendError::Closed(_)) => Told::Gone,
        }
    }

    fn tell_everything(&mut self) -> Told {
        if self.has_last()
            && let Some(last) = self.last.take()
        {
            last.send(Invalidation::Everything);
        }
        self.told()
    }

    /// Whether the last place is free, after trying to get it back.
    fn has_last(&mut self) -> bool {
        if self.last.is_none() {
            self.last = self.queue.clone().try_reserve_owned().ok();
        }
        self.last.is_some()
    }

    fn told(&self) -> Told {
        if self.queue.is_closed() {
            Told::Gone
        } else {
            Told::Told
        }
    }
}
