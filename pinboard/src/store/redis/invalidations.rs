//! What the node must forget, on its way there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pinned_domain::{Domain, TaskHandle};
use redis::{PushInfo, PushKind, Value};
use tokio::sync::{Notify, mpsc};

use super::keys;
use crate::store::Invalidation;

/// How many wait to be read. When there are more, everything is forgotten instead.
const CAPACITY: usize = 8_192;

/// The sending end. Sending never waits, and never fails: what has no room becomes [`Invalidation::Everything`].
pub(super) struct Invalidations {
    sender: mpsc::Sender<Invalidation>,
    receiver: Mutex<Option<mpsc::Receiver<Invalidation>>>,
    /// Everything is to be forgotten, as soon as there is room to say so.
    owed: Arc<Owed>,
    forwarder: TaskHandle<()>,
}

#[derive(Default)]
struct Owed {
    everything: AtomicBool,
    changed: Notify,
}

/// What a push of the server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// Rows have changed; it has been passed on.
    Rows,
    /// Everything on the server has gone; it has been passed on.
    Flushed,
    /// The connection has ended.
    Disconnected,
    /// Nothing that matters here.
    Other,
}

impl Invalidations {
    pub(super) fn new(domain: &Domain) -> Self {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let owed = Arc::new(Owed::default());
        let forwarder = domain.spawn(forward(sender.clone(), Arc::clone(&owed)));
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            owed,
            forwarder,
        }
    }

    /// The receiving end, once.
    pub(super) fn receiver(&self) -> Option<mpsc::Receiver<Invalidation>> {
        self.receiver.lock().take()
    }

    pub(super) fn row(&self, key: crate::store::PlacementKey) {
        self.send(Invalidation::Row(key));
    }

    pub(super) fn everything(&self) {
        self.send(Invalidation::Everything);
    }

    fn send(&self, invalidation: Invalidation) {
        // While everything is owed it is still to be sent, and says this too.
        if self.owed.everything.load(Ordering::Acquire) {
            return;
        }
        if let Err(mpsc::error::TrySendError::Full(_)) = self.sender.try_send(invalidation) {
            self.owed.everything.store(true, Ordering::Release);
            self.owed.changed.notify_one();
        }
    }

    /// Passes on what a push of the server says.
    pub(super) fn push(&self, push: PushInfo) -> Pushed {
        match push.kind {
            PushKind::Invalidate => match push.data.into_iter().next() {
                Some(Value::Array(keys)) => {
                    for key in keys {
                        self.changed(&key);
                    }
                    Pushed::Rows
                }
                _ => {
                    self.everything();
                    Pushed::Flushed
                }
            },
            PushKind::Disconnection => Pushed::Disconnected,
            _ => Pushed::Other,
        }
    }

    fn changed(&self, key: &Value) {
        let key = match key {
            Value::BulkString(key) => keys::parse_row(key),
            Value::SimpleString(key) => keys::parse_row(key.as_bytes()),
            _ => None,
        };
        match key {
            Some(key) => self.row(key),
            // Only rows are read in a way that has the server remember it.
            None => self.everything(),
        }
    }
}

impl Drop for Invalidations {
    fn drop(&mut self) {
        self.forwarder.abort();
    }
}

/// Sends what is owed as soon as there is room.
async fn forward(sender: mpsc::Sender<Invalidation>, owed: Arc<Owed>) {
    loop {
        owed.changed.notified().await;
        let Ok(room) = sender.reserve().await else {
            return;
        };
        // Taken back before it is sent: whatever was left out for it was left out before.
        owed.everything.store(false, Ordering::Release);
        room.send(Invalidation::Everything);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::PlacementKey;

    fn invalidate(keys: &[&str]) -> PushInfo {
        let keys = keys
            .iter()
            .map(|key| Value::BulkString(key.as_bytes().to_vec()));
        PushInfo {
            kind: PushKind::Invalidate,
            data: vec![Value::Array(keys.collect())],
        }
    }

    #[tokio::test]
    async fn what_has_no_room_becomes_everything() {
        let invalidations = Invalidations::new(&Domain::real());
        let mut receiver = invalidations.receiver().expect("asked for once");
        assert!(invalidations.receiver().is_none());
        for n in 0..CAPACITY + 10 {
            invalidations.row(PlacementKey::single("/ns", n.to_string()));
        }
        for n in 0..CAPACITY {
            let row = Invalidation::Row(PlacementKey::single("/ns", n.to_string()));
            assert_eq!(receiver.recv().await, Some(row));
        }
        assert_eq!(receiver.recv().await, Some(Invalidation::Everything));
        // From then on they are told apart again.
        let key = PlacementKey::single("/ns", "after");
        invalidations.row(key.clone());
        assert_eq!(receiver.recv().await, Some(Invalidation::Row(key)));
    }

    #[tokio::test]
    async fn a_push_names_rows_or_everything() {
        let invalidations = Invalidations::new(&Domain::real());
        let mut receiver = invalidations.receiver().expect("asked for once");
        let push = invalidate(&["pinboard:{s0}:row:*:/ns:a%3Ab", "something else"]);
        assert_eq!(invalidations.push(push), Pushed::Rows);
        let key = PlacementKey::single("/ns", "a:b");
        assert_eq!(receiver.recv().await, Some(Invalidation::Row(key)));
        assert_eq!(receiver.recv().await, Some(Invalidation::Everything));
        let flushed = PushInfo {
            kind: PushKind::Invalidate,
            data: vec![Value::Nil],
        };
        assert_eq!(invalidations.push(flushed), Pushed::Flushed);
        assert_eq!(receiver.recv().await, Some(Invalidation::Everything));
    }
}
