//! Waking everyone who waits on one socket.

use std::{
    future::Future,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use tokio::sync::Notify;
use tokio::task::coop::consume_budget;

/// Turns the one waker that a transport keeps into a wake for each task that waits: the reader, any number of
/// senders, and the host.
///
/// A spurious wake costs one look at the socket, a lost one hangs a task; so every wake is for all.
#[derive(Default)]
pub(super) struct Wakes {
    changed: Notify,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

impl Wakes {
    /// Wakes every task that waits; also to be called after the socket's state has changed.
    pub(super) fn wake_all(&self) {
        self.changed.notify_waiters();
    }

    /// Ends at the first wake after this call, not after its first poll: take it, look at the socket, then wait.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + Send {
        self.changed.notified()
    }

    /// Polls `look` after every wake until it is ready.
    pub(super) async fn until_ready<T>(
        &self,
        waker: &Waker,
        mut look: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> T {
        loop {
            let changed = self.changed();
            if let Poll::Ready(output) = look(&mut Context::from_waker(waker)) {
                return output;
            }
            changed.await;
            yield_if_due().await;
        }
    }
}

/// Gives way to other tasks when this one has used up its share.
///
/// A transport may wake its task at once, as a way to let others run first. Looking again without giving way would
/// then spin for ever on a runtime with one thread.
pub(super) async fn yield_if_due() {
    consume_budget().await;
}
