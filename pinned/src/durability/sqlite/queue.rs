//! From the callers to the thread, in the order of the calls.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::clock;
use super::job::Job;

/// How long the thread sleeps, once for each flush, until those whom it has just answered are back. Without it, the first
/// to come back would be flushed alone, with the others waiting behind: half of all flushes would carry one operation.
const LINGER: Duration = Duration::from_micros(200);

/// How often the thread gives its core to others, for each flush, before it sleeps. A caller who writes one row after the
/// other is back before that, and neither has to be woken by the other. An idle store does none of it.
const YIELDS: usize = 100;

/// The same where several have been answered at once: whoever wakes from sleep to write the next row is not there before
/// that, and the others come while the first are done.
const YIELDS_FOR_MANY: usize = 500;

/// How long those who are back already wait for the others, for each flush: where others want the core, each time that it
/// is given away may take as long as they like.
const LONGEST: Duration = Duration::from_millis(1);

/// How long the thread waits yet for those who are to share a flush.
pub(super) struct Patience {
    yields: usize,
    lingers: bool,
    /// More than one are expected.
    shared: bool,
    /// Since when the first of them waits.
    since: Option<Instant>,
}

impl Patience {
    /// So long as `expected` of them are worth.
    pub(super) fn with(expected: usize) -> Self {
        let shared = expected > 1;
        Self {
            yields: if shared { YIELDS_FOR_MANY } else { YIELDS },
            lingers: true,
            shared,
            since: None,
        }
    }

    fn is_over(&self) -> bool {
        self.since
            .is_some_and(|since| clock::now() - since >= LONGEST)
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
    /// Whoever comes now is not the only one: the thread is at work, or has just answered several.
    busy: AtomicBool,
}

#[derive(Default)]
struct State {
    waiting: Vec<Box<dyn Job>>,
    /// The thread sleeps until so many wait; 0 while it does not sleep.
    wake_at: usize,
    closed: bool,
}

impl Queue {
    /// Puts `job` in the queue, and says whether it is alone with the thread, as far as one can tell. A queue that is closed
    /// drops it, and with it the promise of an answer.
    pub(super) fn push(&self, job: Box<dyn Job>) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return false;
        }
        let alone = state.waiting.is_empty() && !self.busy.load(Ordering::Relaxed);
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
        alone
    }

    /// Takes all that wait into `taken`, which is empty, and waits for the first. Nothing is taken once the queue is closed
    /// and empty.
    pub(super) fn take(&self, taken: &mut Vec<Box<dyn Job>>, patience: &mut Patience) {
        self.busy.store(patience.shared, Ordering::Relaxed);
        self.look_out(patience);
        let mut state = self.state.lock();
        while state.waiting.is_empty() && !state.closed {
            state.wake_at = 1;
            self.filled.wait(&mut state);
        }
        self.busy.store(true, Ordering::Relaxed);
        self.hand_over(state, taken);
        patience.since = patience.shared.then(clock::now);
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
            if patience.is_over() {
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

    fn take(queue: &Queue, expected: usize) -> usize {
        let mut taken = vec![];
        queue.take(&mut taken, &mut Patience::with(expected));
        taken.len()
    }

    #[test]
    fn one_is_alone_whom_the_thread_does_not_make_wait_for_others() {
        let queue = Queue::default();
        assert!(push(&queue));
        assert!(!push(&queue), "another waits");
        assert_eq!(take(&queue, 1), 2);
        assert!(!push(&queue), "the thread is at work");
        assert_eq!(take(&queue, 2), 1);
        assert!(!push(&queue), "the thread is at work");
    }

    #[test]
    fn a_closed_queue_takes_nobody() {
        let queue = Queue::default();
        queue.close();
        assert!(!push(&queue));
        assert_eq!(take(&queue, 1), 0);
    }
}
