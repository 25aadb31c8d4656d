//! When to look at which instance: two ordered sets of due times, so that an idle instance costs nothing until its
//! own time comes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::record::Record;

/// An entry of a set: its due time, and a number that tells equal times apart.
pub(super) type TimerKey = (Instant, u64);

type Set = BTreeMap<TimerKey, Arc<Record>>;

/// The due times of one host.
///
/// Its lock may be taken while a record's is held, never the other way round.
pub(super) struct Timers {
    sets: Mutex<Sets>,
    /// The earliest due time has moved forward.
    earlier: Notify,
    start: Instant,
    tick: Duration,
}

#[derive(Default)]
struct Sets {
    /// Looked at on a tick of the sweep.
    idle: Set,
    /// Looked at in their very moment.
    deadlines: Set,
    next: u64,
}

impl Sets {
    fn key(&mut self, at: Instant) -> TimerKey {
        self.next += 1;
        (at, self.next)
    }
}

impl Timers {
    pub(super) fn new(start: Instant, tick: Duration) -> Self {
        Self {
            sets: Mutex::new(Sets::default()),
            earlier: Notify::new(),
            start,
            tick,
        }
    }

    /// Looks at `record` on the first tick at or after `at`; replaces what `timer` stood for.
    pub(super) fn arm_idle(&self, record: &Arc<Record>, timer: &mut Option<TimerKey>, at: Instant) {
        self.arm(record, timer, Some(at), |sets| &mut sets.idle);
    }

    /// Looks at `record` at `at`; replaces what `timer` stood for.
    pub(super) fn arm_deadline(
        &self,
        record: &Arc<Record>,
        timer: &mut Option<TimerKey>,
        at: Option<Instant>,
    ) {
        if timer.map(|(at, _)| at) != at {
            self.arm(record, timer, at, |sets| &mut sets.deadlines);
        }
    }

    /// Looks at a record no more.
    pub(super) fn disarm(&self, idle: &mut Option<TimerKey>, deadline: &mut Option<TimerKey>) {
        if idle.is_none() && deadline.is_none() {
            return;
        }
        let mut sets = self.sets.lock();
        if let Some(key) = idle.take() {
            sets.idle.remove(&key);
        }
        if let Some(key) = deadline.take() {
            sets.deadlines.remove(&key);
        }
    }

    fn arm(
        &self,
        record: &Arc<Record>,
        timer: &mut Option<TimerKey>,
        at: Option<Instant>,
        set: fn(&mut Sets) -> &mut Set,
    ) {
        let is_first = {
            let mut sets = self.sets.lock();
            if let Some(key) = timer.take() {
                set(&mut sets).remove(&key);
            }
            match at {
                None => false,
                Some(at) => {
                    let key = sets.key(at);
                    *timer = Some(key);
                    let set = set(&mut sets);
                    set.insert(key, Arc::clone(record));
                    set.first_key_value()
                        .is_some_and(|(first, _)| *first == key)
                }
            }
        };
        if is_first {
            self.earlier.notify_one();
        }
    }

    /// Records whose time has come by `now`, out of their sets. Their own note of the timer still stands: each is to
    /// compare it with the key, for it may have been set anew meanwhile.
    pub(super) fn due(&self, now: Instant) -> Due {
        let mut sets = self.sets.lock();
        let bound = (now, u64::MAX);
        Due {
            idle: take_until(&mut sets.idle, bound),
            deadlines: take_until(&mut sets.deadlines, bound),
        }
    }

    /// The next moment at which something is due: a deadline, or the tick that follows an idle time.
    fn next(&self) -> Option<Instant> {
        let sets = self.sets.lock();
        let idle = sets
            .idle
            .first_key_value()
            .map(|((at, _), _)| self.tick_after(*at));
        let deadline = sets.deadlines.first_key_value().map(|((at, _), _)| *at);
        idle.into_iter().chain(deadline).min()
    }

    /// The first tick at or after `at`.
    fn tick_after(&self, at: Instant) -> Instant {
        let since = at.saturating_duration_since(self.start).as_nanos();
        let tick = self.tick.as_nanos();
        let ticks = since.div_ceil(tick).max(1);
        let nanos = u64::try_from(ticks.saturating_mul(tick)).unwrap_or(u64::MAX);
        self.start + Duration::from_nanos(nanos)
    }

    /// Waits until something is due.
    pub(super) async fn wait(&self, domain: &crate::domain::Domain) {
        loop {
            match self.next() {
                None => self.earlier.notified().await,
                Some(at) if at <= domain.monotonic() => return,
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = domain.sleep_until(at) => return,
                        () = self.earlier.notified() => {}
                    }
                }
            }
        }
    }
}

/// What a look at the clock found.
pub(super) struct Due {
    pub(super) idle: Set,
    pub(super) deadlines: Set,
}

fn take_until(set: &mut Set, bound: TimerKey) -> Set {
    let later = set.split_off(&bound);
    std::mem::replace(set, later)
}
