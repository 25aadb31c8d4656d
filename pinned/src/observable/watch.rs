use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver};

use super::node::Node;
use super::op::Op;
use super::subscribe::{Subscription, subscribe};

/// What a reader of [`Changes`] gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The next op.
    Op(Op),
    /// The reader was too slow and the ops from here on were dropped. [`Changes::restart`] gives a new snapshot to go on
    /// from; without it, nothing more comes.
    Lagged,
}

/// The ops of an observable as an async stream, made by [`watch`](super::ObservableView::watch) together with the snapshot
/// they start from.
///
/// At most the capacity waits here; a writer is never held up by a slow reader. It ends when the observable is gone: all its
/// handles dropped, and not mounted anywhere. `Changes` does not keep it alive.
#[must_use = "ops that nobody reads are dropped"]
pub struct Changes {
    node: Weak<Node>,
    capacity: usize,
    ops: Receiver<Op>,
    lagged: Arc<AtomicBool>,
    _subscription: Subscription,
}

impl Changes {
    pub(super) fn start(node: &Arc<Node>, capacity: usize) -> (Value, Self) {
        let capacity = capacity.max(1);
        let (sender, ops) = mpsc::channel(capacity);
        let lagged = Arc::new(AtomicBool::new(false));
        let lags = lagged.clone();
        let sender = Mutex::new(Some(sender));
        let keep = move |op: &Op| {
            let mut sender = sender.lock();
            // After a gap nothing more is worth keeping. Closing the channel wakes a reader that has just emptied it.
            if sender
                .as_ref()
                .is_some_and(|sender| sender.try_send(op.clone()).is_err())
            {
                lags.store(true, Ordering::Release);
                *sender = None;
            }
        };
        let (subscription, snapshot) =
            subscribe(node, keep, |held| node.state(held).content.snapshot(held));
        let changes = Self {
            node: Arc::downgrade(node),
            capacity,
            ops,
            lagged,
            _subscription: subscription,
        };
        (snapshot, changes)
    }

    /// The next change, or `None` when the observable is gone, and after [`Change::Lagged`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a change is taken when it is returned, not before.
    pub async fn next(&mut self) -> Option<Change> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    /// Forgets what was not read yet and starts anew: returns a snapshot, and the changes from then on follow. `None` when
    /// the observable is gone.
    ///
    /// ```
    /// use pinned::observable::{Change, Op};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let count = pinned::Observable::new(json!(0))?;
    /// let (_, mut changes) = count.watch(1);
    /// for n in 1..4 { count.set(json!(n))?; }
    /// assert_eq!(changes.next().await, Some(Change::Op(Op::replace([], 1))));
    /// assert_eq!(changes.next().await, Some(Change::Lagged));
    /// assert_eq!(changes.restart(), Some(json!(3)));
    /// count.set(json!(4))?;
    /// assert_eq!(changes.next().await, Some(Change::Op(Op::replace([], 4))));
    /// # Ok::<(), pinned::observable::ObservableError>(())
    /// # }).unwrap();
    /// ```
    pub fn restart(&mut self) -> Option<Value> {
        let node = self.node.upgrade()?;
        let (snapshot, changes) = Self::start(&node, self.capacity);
        *self = changes;
        Some(snapshot)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Change>> {
        let change = match ready!(self.ops.poll_recv(context)) {
            Some(op) => Some(Change::Op(op)),
            None => self
                .lagged
                .swap(false, Ordering::Acquire)
                .then_some(Change::Lagged),
        };
        Poll::Ready(change)
    }
}

impl Stream for Changes {
    type Item = Change;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Change>> {
        self.poll(context)
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Changes")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
