//! Gathers the writes that wait into groups.
//!
//! While one group is on its way the next one gathers, so that groups grow with the load and a lone write waits for
//! nobody. A commit waits for the disk, and many small commits wait longer than few large ones: more groups side by side
//! would only make each smaller. A group that takes long, though, must not hold up the rest: it stops counting, and
//! another one starts beside it, up to the size of the pool.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::acquire::Acquire;
use super::attempts::Engine;
use super::group::{Group, Pending, settle};
use super::ops::Write;

/// How many groups go out side by side while all of them are prompt.
const PROMPT_GROUPS: usize = 1;
/// How often a lane lets others run before it looks for its next group.
const GATHERING: usize = 12;
/// How long a group counts as prompt: several commits of a healthy disk.
const PROMPT: Duration = Duration::from_millis(25);
/// The largest group, in writes: the costs of a transaction are spread thin by then.
const GROUP_WRITES: usize = 512;
/// The largest group, in bytes, unless a single write is larger: far from any deadline.
const GROUP_BYTES: usize = 4 << 20;

/// Hands waiting writes to groups.
#[derive(Clone)]
pub(super) struct Batcher {
    engine: Arc<Engine>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// At most one write of each instance.
    waiting: VecDeque<Pending>,
    /// Lanes whose group is prompt, and those that wait for one.
    prompt: usize,
    /// Lanes whose group takes long.
    slow: usize,
}

impl Batcher {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            state: Arc::default(),
        }
    }

    /// Sees to a write from now on: into a group as soon as it has its turn.
    pub(super) fn accept(&self, mut write: Pending) {
        if write.place.is_first() {
            self.submit(write);
            return;
        }
        let batcher = self.clone();
        drop(self.engine.domain.spawn(async move {
            tokio::select! {
                // Given up in the line, it leaves the line.
                () = write.reply.closed() => {}
                () = write.place.turn() => batcher.submit(write),
            }
        }));
    }

    /// Puts a write that has its turn into one of the next groups.
    fn submit(&self, write: Pending) {
        self.state.lock().waiting.push_back(write);
        self.open_lane();
    }

    /// Starts a lane if there is work for one and room.
    fn open_lane(&self) {
        let mut state = self.state.lock();
        let lanes = state.prompt + state.slow;
        let room = state.prompt < PROMPT_GROUPS && lanes < self.engine.pool.size();
        if state.waiting.is_empty() || !room {
            return;
        }
        state.prompt += 1;
        drop(state);
        let lane = Lane {
            batcher: self.clone(),
            pace: Pace::Prompt,
        };
        // On its own: a caller that gives up must not tear the group its write is in.
        drop(self.engine.domain.spawn(lane.run()));
    }
}

/// A task that sends one group after the other, for as long as there are writes.
struct Lane {
    batcher: Batcher,
    pace: Pace,
}

/// As what a lane is counted.
#[derive(Clone, Copy)]
enum Pace {
    Prompt,
    Slow,
    Ended,
}

impl State {
    fn recount(&mut self, from: &mut Pace, to: Pace) {
        match *from {
            Pace::Prompt => self.prompt -= 1,
            Pace::Slow => self.slow -= 1,
            Pace::Ended => {}
        }
        match to {
            Pace::Prompt => self.prompt += 1,
            Pace::Slow => self.slow += 1,
            Pace::Ended => {}
        }
        *from = to;
    }
}

impl Lane {
    async fn run(mut self) {
        let engine = Arc::clone(&self.batcher.engine);
        let mut last = 0;
        loop {
            self.gather(last).await;
            let members = self.take();
            last = members.len();
            if members.is_empty() {
                return;
            }
            let group = Group {
                members: &members,
                stamp: &engine.stamp,
            };
            let outcome = {
                let mut sending = pin!(engine.run(&group));
                match engine.domain.timeout(PROMPT, &mut sending).await {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        self.count_as(Pace::Slow);
                        self.batcher.open_lane();
                        sending.await
                    }
                }
            };
            for write in settle(members, outcome) {
                drop(engine.domain.spawn(alone(Arc::clone(&engine), write)));
            }
        }
    }

    /// Lets those who are about to submit do so: the answers to the `last` group woke as many at once, and each passes
    /// through a few tasks before it is back. It costs no time that anybody could use otherwise.
    async fn gather(&self, last: usize) {
        for _ in 0..GATHERING {
            tokio::task::yield_now().await;
            if self.batcher.state.lock().waiting.len() >= last {
                return;
            }
        }
    }

    fn count_as(&mut self, pace: Pace) {
        self.batcher.state.lock().recount(&mut self.pace, pace);
    }

    /// The next group, without those that nobody waits for any more. Without one the lane ends, as it does when it was
    /// slow and others are at work by now.
    fn take(&mut self) -> Vec<Pending> {
        let (mut members, mut abandoned, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut state = self.batcher.state.lock();
        if matches!(self.pace, Pace::Prompt) || state.prompt < PROMPT_GROUPS {
            while members.len() < GROUP_WRITES && bytes < GROUP_BYTES {
                let Some(write) = state.waiting.pop_front() else {
                    break;
                };
                if write.reply.is_closed() {
                    abandoned.push(write);
                } else {
                    bytes += write.weight();
                    members.push(write);
                }
            }
        }
        // In the same locked step as the look: a write that comes after it starts a lane.
        let pace = if members.is_empty() {
            Pace::Ended
        } else {
            Pace::Prompt
        };
        state.recount(&mut self.pace, pace);
        drop(state);
        // Leaving a line takes its own lock.
        drop(abandoned);
        members
    }
}

/// A write in a transaction of its own, which ends when nobody waits for it any more (D11.9).
async fn alone(engine: Arc<Engine>, mut write: Pending) {
    let outcome = {
        let (claim, epoch) = (&write.claim, write.epoch);
        let act = Write {
            ops: &write.ops,
            stamp: &engine.stamp,
        };
        let acquire = Acquire { claim, epoch, act };
        tokio::select! {
            biased;
            outcome = engine.run(&acquire) => outcome,
            () = write.reply.closed() => return,
        }
    };
    write.answer(outcome.map_err(Into::into));
}

/// A lane that a panic or the end of its runtime cut short makes room for the next one.
impl Drop for Lane {
    fn drop(&mut self) {
        if !matches!(self.pace, Pace::Ended) {
            self.count_as(Pace::Ended);
            self.batcher.open_lane();
        }
    }
}
