//! One connection, seen from outside its task.
//!
//! hyper's own guards (a timer for each head, a watcher for the shutdown in each poll) cost as much as the rest of a small
//! request. Here a connection counts what happens on it, and whoever watches looks at all of them now and then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// One connection, seen from outside its task.
#[derive(Debug, Default)]
pub(super) struct Vitals {
    /// Requests begun.
    begun: AtomicU32,
    /// Requests whose answers have ended, for whatever reason.
    ended: AtomicU32,
    /// How often a head began or ended: odd while one is being read.
    heads: AtomicU32,
    /// What became of the last request for an upgrade; an [`Upgrade`].
    upgrade: AtomicU8,
    /// Something came before that was known.
    early: AtomicBool,
    /// A request has been under way for a while with nothing else seen: the client may have left.
    doubted: AtomicBool,
    /// The strongest [`Nudge`] so far.
    nudge: AtomicU8,
    /// The tasks that listen. They stay when they are used: what is told later has to be heard as well.
    connection: Mutex<Option<Waker>>,
    tunnel: Mutex<Option<Waker>>,
}

/// What a connection is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Nudge {
    Nothing,
    /// Finish what was begun, then close.
    Goodbye,
    /// Close tunnels, with a word where there is one.
    Close,
    /// Close now.
    End,
}

/// What became of a request for an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Upgrade {
    Undecided,
    Granted,
    Refused,
}

/// Which task of a connection listens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Listener {
    Connection,
    Tunnel,
}

/// How long a connection may take over things.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Over the head of a request, and over its first one from the start.
    pub(super) head: Duration,
    /// Over beginning another request.
    pub(super) idle: Duration,
}

/// What was seen of a connection at the last look, and since when it has been so.
#[derive(Debug)]
pub(super) struct Sight {
    counts: (u32, u32, u32),
    since: Instant,
}

impl Vitals {
    /// A connection whose first head is awaited.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            heads: AtomicU32::new(1),
            ..Self::default()
        })
    }

    /// A request has begun; it ends when what is returned is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Work {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Work(Arc::clone(self))
    }

    /// Heads have begun or ended; that of the first one counts from the start.
    pub(super) fn head_edges(&self, edges: u32) {
        self.heads.fetch_add(edges, Ordering::Relaxed);
    }

    /// No heads are read here any more.
    pub(super) fn heads_are_over(&self) {
        self.heads.store(2, Ordering::Relaxed);
    }

    pub(super) fn decide_upgrade(&self, upgrade: Upgrade) {
        self.upgrade.store(upgrade as u8, Ordering::Release);
    }

    /// The decision, once.
    pub(super) fn take_upgrade(&self) -> Upgrade {
        match self
            .upgrade
            .swap(Upgrade::Undecided as u8, Ordering::AcqRel)
        {
            0 => Upgrade::Undecided,
            1 => Upgrade::Granted,
            _ => Upgrade::Refused,
        }
    }

    pub(super) fn note_early(&self) {
        self.early.store(true, Ordering::Relaxed);
    }

    /// Whether bytes have passed unread, because the connection might have become something else.
    pub(super) fn was_early(&self) -> bool {
        self.early.load(Ordering::Relaxed)
    }

    /// Whether to ask if the client is still there, once for each doubt.
    pub(super) fn take_doubt(&self) -> bool {
        self.doubted.load(Ordering::Relaxed) && self.doubted.swap(false, Ordering::Relaxed)
    }

    pub(super) fn tell(&self, nudge: Nudge) {
        if self.nudge.fetch_max(nudge as u8, Ordering::AcqRel) < nudge as u8 {
            self.wake(Listener::Connection);
            self.wake(Listener::Tunnel);
        }
    }

    /// From here on the task of `cx` is woken when there is a stronger nudge.
    pub(super) fn listen(&self, listener: Listener, cx: &Context<'_>) {
        let mut task = self.task(listener).lock();
        match &mut *task {
            Some(task) => task.clone_from(cx.waker()),
            None => *task = Some(cx.waker().clone()),
        }
    }

    fn wake(&self, listener: Listener) {
        if let Some(task) = &*self.task(listener).lock() {
            task.wake_by_ref();
        }
    }

    fn task(&self, listener: Listener) -> &Mutex<Option<Waker>> {
        match listener {
            Listener::Connection => &self.connection,
            Listener::Tunnel => &self.tunnel,
        }
    }

    /// The strongest nudge so far.
    pub(super) fn nudge(&self) -> Nudge {
        match self.nudge.load(Ordering::Acquire) {
            0 => Nudge::Nothing,
            1 => Nudge::Goodbye,
            2 => Nudge::Close,
            _ => Nudge::End,
        }
    }

    /// Ends once `nudge`, or a stronger one, has been told.
    pub(super) fn told(&self, listener: Listener, nudge: Nudge) -> Told<'_> {
        Told {
            vitals: self,
            listener,
            nudge,
        }
    }

    /// A look from outside. `sight` is what the last one came to.
    pub(super) fn look(&self, sight: &mut Sight, now: Instant, patience: Patience) {
        let begun = self.begun.load(Ordering::Relaxed);
        let ended = self.ended.load(Ordering::Relaxed);
        let heads = self.heads.load(Ordering::Relaxed);
        let counts = (begun, ended, heads);
        if begun != ended || counts != sight.counts {
            if counts == sight.counts {
                self.doubted.store(true, Ordering::Relaxed);
                self.wake(Listener::Connection);
            }
            *sight = Sight { counts, since: now };
            return;
        }
        let for_so_long = now.saturating_duration_since(sight.since);
        let is_in_head = heads % 2 == 1;
        if is_in_head && for_so_long >= patience.head {
            self.tell(Nudge::End);
        } else if for_so_long >= patience.idle + patience.head {
            // It was told goodbye, and does not go.
            self.tell(Nudge::End);
        } else if for_so_long >= patience.idle {
            self.tell(Nudge::Goodbye);
        }
    }
}

impl Sight {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            // Nothing looks like that.
            counts: (0, u32::MAX, 0),
            since: now,
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Work(Arc<Vitals>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// See [`Vitals::told`].
#[derive(Debug)]
pub(super) struct Told<'v> {
    vitals: &'v Vitals,
    listener: Listener,
    nudge: Nudge,
}

impl Future for Told<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.vitals.listen(self.listener, cx);
        if self.vitals.nudge() >= self.nudge {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_listener_that_was_told_goodbye_hears_that_it_has_to_end() {
        for listener in [Listener::Connection, Listener::Tunnel] {
            let (vitals, woken) = (Vitals::default(), Arc::<Woken>::default());
            let waker = Waker::from(Arc::clone(&woken));
            vitals.listen(listener, &Context::from_waker(&waker));
            for (times, nudge) in [(1, Nudge::Goodbye), (2, Nudge::Close), (3, Nudge::End)] {
                // Twice is as good as once.
                vitals.tell(nudge);
                vitals.tell(nudge);
                assert_eq!(woken.0.load(Ordering::Relaxed), times, "{listener:?}");
                assert_eq!(vitals.nudge(), nudge);
            }
        }
    }
}
