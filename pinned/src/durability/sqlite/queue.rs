//! From the callers to the thread, in the order of the calls.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::job::Job;
use super::watch::{self, WATCH};

/// How long the thread sleeps, once for each flush, until those whom it has just answered are back. Without it, the first
/// to come back would be flushed alone, with the others waiting behind: half of all flushes would carry one operation.
const LINGER: Duration = Duration::from_micros(200);

/// How often the thread gives its core to others, for each flush, before it sleeps. A caller who writes one row after the
/// other is back before that, and neither has to be woken by the other. An idle store does none of it.
const YIELDS: usize = 100;

/// The same where several have been answered at once: whoever wakes from sleep to write the next row is not there before
/// that, and the others come while the first are done.
const YIELDS_FOR_MANY: usize = 500;

/// How long that may take, before anybody is there, and again with some there: where others want the core, each time that it
/// is given away may take as long as they like.
const LONGEST: Duration = Duration::from_millis(1);

/// How long the thread waits yet for those who are to share a flush.
pub(super) struct Patience {
    yields: usize,
    lingers: bool,
    /// Since when it looks out for the first, or for those who are missing.
    since: Instant,
    /// Who comes first, and alone, is answered soon.
    soon: bool,
}

impl Patience {
    /// So long as `expected` of them are worth, where the last flush took `took`.
    pub(super) fn with(expected: usize, took: Duration) -> Self {
        let shared = expected > 1;
        Self {
            yields: if shared { YIELDS_FOR_MANY } else { YIELDS },
            lingers: true,
            since: watch::now(),
            soon: !shared && took < WATCH,
        }
    }
}

/// The operations that wait.
///
/// A call puts its operation here itself, so that the order of calls is the order of effects, polled or not. The queue
/// holds as many as there are futures that callers hold on to, one each: those that were dropped are passed over. So
/// it is bounded by its callers, who are instances with one write at a time, and needs neither a limit nor a caller
/// who blocks on it.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    /// How many wait, for the thread to look at without the lock.
    waiting: AtomicUsize,
    /// Who comes first is answered soon: the thread has nothing to do, the disk is quick, and nobody else is expected.
    soon: AtomicBool,
}

#[derive(Default)]
struct State {
    waiting: Vec<Box<dyn Job>>,
    /// The thread sleeps until so many wait; 0 while it does not sleep.
    wake_at: usize,
    closed: bool,
}

impl Queue {
    /// Puts `job` in the queue, and says whether it is worth watching for its answer, as far as one can tell. A queue that is
    /// closed drops it, and with it the promise of an answer.
    pub(super) fn push(&self, job: Box<dyn Job>) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return false;
        }
        let soon = state.waiting.is_empty() && self.soon.load(Ordering::Relaxed);
        state.waiting.push(job);
        self.waiting.store(state.waiting.len(), Ordering::Relaxed);
        let wake = state.wake_at != 0 && state.waiting.len() >= state.wake_at;
        if wake {
            state.wake_at = 0;
        }
        drop(state);
        if wake {
            self.filled.notify_one();
        }
        soon
    }

    /// Takes all that wait into `taken`, which is empty, and waits for the first. Nothing is taken once the queue is closed
    /// and empty.
    pub(super) fn take(&self, taken: &mut Vec<Box<dyn Job>>, patience: &mut Patience) {
        self.soon.store(patience.soon, Ordering::Relaxed);
        self.look_out(patience);
        let mut state = self.state.lock();
        while state.waiting.is_empty() && !state.closed {
            state.wake_at = 1;
            self.filled.wait(&mut state);
        }
        self.soon.store(false, Ordering::Relaxed);
        self.hand_over(state, taken);
        patience.since = watch::now();
    }

    /// Takes what waits into `taken`, which is empty, and waits a little for some of `missing` that are expected. Nothing is
    /// taken when they do not come.
    pub(super) fn take_more(
        &self,
        taken: &mut Vec<Box<dyn Job>>,
        missing: usize,
        patience: &mut Patience,
    ) {
        self.look_out(patience);
        let mut state = self.state.lock();
        if state.waiting.is_empty() && !state.closed && patience.lingers {
            patience.lingers = false;
            state.wake_at = missing;
            // Whether they came or the time is up, or neither: what is there is what goes.
            let _ = self.filled.wait_for(&mut state, LINGER);
        }
        self.hand_over(state, taken);
    }

    /// Looks for a while whether somebody waits, without the lock.
    fn look_out(&self, patience: &mut Patience) {
        while patience.yields > 0 && self.waiting.load(Ordering::Relaxed) == 0 {
            patience.yields -= 1;
            thread::yield_now();
            if watch::now() - patience.since >= LONGEST {
                patience.yields = 0;
                patience.lingers = false;
            }
        }
    }

    fn hand_over(&self, mut state: MutexGuard<'_, State>, taken: &mut Vec<Box<dyn Job>>) {
        state.wake_at = 0;
        std::mem::swap(taken, &mut state.waiting);
        self.waiting.store(0, Ordering::Relaxed);
    }

    /// Takes no more from callers. What waits is still done.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        // Whoever looks out without the lock sees it there.
        self.waiting.store(usize::MAX, Ordering::Relaxed);
        self.filled.notify_one();
    }

    /// Takes no more, and answers nobody who waits.
    pub(super) fn abandon(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::job;
    use super::*;

    fn push(queue: &Queue) -> bool {
        queue.push(job(0, |_| Ok(Ok(()))).0)
    }

    fn take(queue: &Queue, expected: usize, took: Duration) -> usize {
        let mut taken = vec![];
        queue.take(&mut taken, &mut Patience::with(expected, took));
        taken.len()
    }

    /// Whether one that comes while the thread sleeps is answered soon, after a flush for `expected` that took `took`.
    fn is_due(expected: usize, took: Duration) -> bool {
        let queue = Queue::default();
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| take(&queue, expected, took));
            while queue.state.lock().wake_at == 0 {
                thread::yield_now();
            }
            let due = push(&queue);
            assert_eq!(sleeper.join().expect("the thread"), 1);
            due
        })
    }

    #[test]
    fn one_is_due_soon_that_has_the_thread_and_a_quick_disk_to_itself() {
        assert!(is_due(1, Duration::ZERO));
        assert!(!is_due(2, Duration::ZERO), "others are expected");
        assert!(!is_due(1, WATCH), "the disk is slow");
    }

    #[test]
    fn none_is_due_soon_behind_another() {
        let queue = Queue::default();
        push(&queue);
        assert!(!push(&queue), "another waits");
        assert_eq!(take(&queue, 1, Duration::ZERO), 2);
        assert!(!push(&queue), "the thread is at work");
    }

    #[test]
    fn a_closed_queue_takes_nobody() {
        let queue = Queue::default();
        queue.close();
        assert!(!push(&queue));
        assert_eq!(take(&queue, 1, Duration::ZERO), 0);
    }
}
