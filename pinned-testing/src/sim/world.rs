//! The state of a simulation: its clock, its timers, its tasks, its trace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use pinned::domain::{Rng, RngStreams};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{SimFailure, SimOptions, TraceEvent};

tokio::task_local! {
    /// The task that runs.
    pub(super) static CURRENT: TaskId;
}

/// A task, numbered in the order of the spawns; the test itself is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskId(pub(super) u64);

/// Where a timer stands in the order of firing: by its time, then by the draw of the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimerKey {
    at: Duration,
    tie: u64,
    seq: u64,
}

/// One life of a process of the simulation, numbered in the order of their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LifeId(u64);

struct Timer {
    task: String,
    life: Option<LifeId>,
    waker: Waker,
}

pub(super) struct World {
    pub(super) options: SimOptions,
    pub(super) runtime: Handle,
    /// Zero of the virtual clock.
    pub(super) start: Instant,
    streams: RngStreams,
    ties: Rng,
    tokens: Rng,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Duration,
    timers: BTreeMap<TimerKey, Timer>,
    /// Who waits for all that is due by a time to have run.
    advances: BTreeMap<(Duration, u64), oneshot::Sender<()>>,
    tasks: BTreeMap<TaskId, Option<LifeId>>,
    /// How often each process was started.
    generations: BTreeMap<String, u64>,
    next_life: u64,
    next_task: u64,
    next_seq: u64,
    trace: Vec<TraceEvent>,
}

/// A task that has not ended; counts from its making to its drop.
pub(super) struct Living {
    world: Arc<World>,
    pub(super) id: TaskId,
}

impl World {
    pub(super) fn new(options: SimOptions, runtime: Handle, start: Instant) -> Self {
        let streams = RngStreams::seeded(options.seed);
        let own = |label| streams.get(label).expect("a label that is not empty");
        Self {
            ties: own("sim/ties"),
            tokens: own("sim/tokens"),
            options,
            runtime,
            start,
            streams,
            state: Mutex::default(),
        }
    }

    /// The stream of the code under test; a prefix keeps it apart from the simulation's own.
    pub(super) fn rng(&self, label: &str) -> Rng {
        let stream = self.streams.get(&format!("domain/{label}"));
        stream.expect("a label that is not empty")
    }

    pub(super) fn fill_token(&self, token: &mut [u8]) {
        for chunk in token.chunks_mut(8) {
            let drawn = self.tokens.u64().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
    }

    /// The virtual time.
    pub(super) fn now(&self) -> Duration {
        self.state.lock().now
    }

    pub(super) fn trace(&self) -> Vec<TraceEvent> {
        self.state.lock().trace.clone()
    }

    pub(super) fn note(&self, event: &str) {
        self.state.lock().record(&current_task(), event);
    }

    /// Opens the next generation of a process: its life, and its number from 1 on.
    pub(super) fn open_life(&self, process: &str) -> (LifeId, u64) {
        let mut state = self.state.lock();
        let life = LifeId(state.next_life);
        state.next_life += 1;
        let generation = state.generations.entry(process.to_owned()).or_default();
        *generation += 1;
        let generation = *generation;
        state.record(&current_task(), &format!("start {process}/{generation}"));
        (life, generation)
    }

    /// Forgets the tasks and the timers of a life that has ended (S1.11).
    pub(super) fn end_life(&self, life: LifeId, event: &str) {
        let mut state = self.state.lock();
        state.record(&current_task(), event);
        state.tasks.retain(|_, of| *of != Some(life));
        let timers = std::mem::take(&mut state.timers);
        let (forgotten, kept): (BTreeMap<_, _>, _) = timers
            .into_iter()
            .partition(|(_, timer)| timer.life == Some(life));
        state.timers = kept;
        drop(state);
        // A waker may be the last of its task, and take timers along.
        drop(forgotten);
    }

    /// Registers a task, which its caller is about to start.
    pub(super) fn enlist(self: &Arc<Self>, life: Option<LifeId>) -> Living {
        let mut state = self.state.lock();
        let id = TaskId(state.next_task);
        state.next_task += 1;
        state.tasks.insert(id, life);
        // Nobody spawns the test itself.
        if id.0 > 0 {
            state.record(&current_task(), &format!("spawn {}", name(id)));
        }
        Living {
            world: Arc::clone(self),
            id,
        }
    }

    /// Sets a timer of the current task.
    pub(super) fn set_timer(&self, life: Option<LifeId>, at: Duration, waker: Waker) -> TimerKey {
        let tie = self.ties.u64();
        let task = current_task();
        let mut state = self.state.lock();
        let key = TimerKey {
            at,
            tie,
            seq: state.next_seq(),
        };
        state.record(&task, &format!("sleep until {}", at.as_secs_f64()));
        state.timers.insert(key, Timer { task, life, waker });
        key
    }

    /// Whether the timer has fired; if not, it wakes `waker` when it does.
    pub(super) fn poll_timer(&self, key: TimerKey, waker: &Waker) -> bool {
        let waker = waker.clone();
        let former = match self.state.lock().timers.get_mut(&key) {
            Some(timer) => std::mem::replace(&mut timer.waker, waker),
            None => return true,
        };
        drop(former);
        false
    }

    pub(super) fn forget_timer(&self, key: TimerKey) {
        let forgotten = self.state.lock().timers.remove(&key);
        // A waker may drop a task, and with it timers of its own.
        drop(forgotten);
    }

    /// Resolves once all that is due by then has run.
    pub(super) fn advance(&self, by: Duration) -> oneshot::Receiver<()> {
        let (done, advanced) = oneshot::channel();
        let mut state = self.state.lock();
        let target = state.now.saturating_add(by);
        let seq = state.next_seq();
        state.advances.insert((target, seq), done);
        advanced
    }

    /// Moves on. Nothing is runnable when this is called.
    pub(super) fn step(&self) -> Result<(), SimFailure> {
        let mut state = self.state.lock();
        state.advances.retain(|_, done| !done.is_closed());
        let timer = state.timers.first_key_value().map(|(key, _)| key.at);
        let advance = state.advances.first_key_value().map(|((at, _), _)| *at);
        let next = match (timer, advance) {
            (Some(timer), Some(advance)) => timer.min(advance),
            (Some(next), None) | (None, Some(next)) => next,
            (None, None) => return Err(self.deadlock(&state)),
        };
        if next > self.options.horizon {
            return Err(self.beyond_horizon(&state, next));
        }
        state.now = state.now.max(next);
        if timer.is_some_and(|timer| timer <= next) {
            let wakers = state.fire();
            // A waker may be the last of its task, and take timers along.
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
        } else if let Some((_, done)) = state.advances.pop_first() {
            drop(state);
            // Timers of that time have fired in earlier steps, and what they woke has run.
            let _ = done.send(());
        }
        Ok(())
    }

    fn deadlock(&self, state: &State) -> SimFailure {
        SimFailure::Deadlock {
            seed: self.options.seed,
            at: state.now,
            waiting: state.tasks.keys().map(|id| name(*id)).collect(),
        }
    }

    fn beyond_horizon(&self, state: &State, until: Duration) -> SimFailure {
        let first = state.timers.first_key_value();
        SimFailure::Horizon {
            seed: self.options.seed,
            task: first.map_or_else(|| name(TaskId(0)), |(_, timer)| timer.task.clone()),
            until,
            horizon: self.options.horizon,
        }
    }
}

impl State {
    fn next_seq(&mut self) -> u64 {
        self.next_seq += 1;
        self.next_seq
    }

    fn record(&mut self, task: &str, event: &str) {
        self.trace.push(TraceEvent {
            at: self.now,
            event: format!("{task} {event}"),
        });
    }

    /// Takes out the timers that are due, in their order.
    fn fire(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(first) = self.timers.first_entry() {
            if first.key().at > self.now {
                break;
            }
            let timer = first.remove();
            self.record(&timer.task, "wake");
            wakers.push(timer.waker);
        }
        wakers
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.world.state.lock().tasks.remove(&self.id);
    }
}

fn name(id: TaskId) -> String {
    match id.0 {
        0 => "main".to_owned(),
        number => format!("task-{number}"),
    }
}

fn current_task() -> String {
    CURRENT
        .try_with(|id| name(*id))
        .unwrap_or_else(|_| "outside".to_owned())
}
