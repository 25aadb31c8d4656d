//! Work on an instance: how it begins, takes turns, goes on as a stream, and ends. Each is one step under the record's
//! lock.

use std::sync::Arc;

use tokio::time::Instant;

use super::close::{CloseJob, CloseKind};
use super::record::{Phase, Record, Stage, State};
use crate::api::chain::ChainHold;
use crate::api::refusal::Refusal;
use crate::api::seam::{Begin, OpenStream, Turn, TurnAnswer, TurnKind, Work, WorkClass};

impl Record {
    /// An admitted request turns into work (H5.1).
    pub(super) fn begin_work(
        &self,
        class: WorkClass,
        turn: Option<(TurnKind, ChainHold)>,
    ) -> Begin {
        let mut state = self.lock();
        let begun = self.begin_locked(&mut state, class, turn);
        if let Begin::Started(_) = begun {
            state.attached -= 1;
        }
        begun
    }

    /// Admission and the beginning of its work in one step, for a resident instance. `None`: the long way.
    pub(super) fn admit_and_begin(&self, kind: TurnKind, hold: ChainHold) -> Option<Begin> {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Live) || self.is_past_deadline(&state) {
            return None;
        }
        Some(self.begin_locked(&mut state, WorkClass::Handler, Some((kind, hold))))
    }

    fn begin_locked(
        &self,
        state: &mut State,
        class: WorkClass,
        turn: Option<(TurnKind, ChainHold)>,
    ) -> Begin {
        match state.phase {
            Phase::Live => {}
            Phase::Cold | Phase::Activating(_) => return Begin::NotResident,
            Phase::Closing(_) | Phase::Closed => return Begin::Refused(Refusal::Closing),
        }
        let answer = match turn {
            None => None,
            Some((kind, hold)) => {
                match state.turns.take(kind, hold, self.host.options.max_waiting) {
                    Ok(answer) => Some(answer),
                    Err(refusal) => return Begin::Refused(refusal),
                }
            }
        };
        state.idle_told = false;
        match class {
            WorkClass::Handler => state.handlers += 1,
            WorkClass::Stream => {
                state.sockets += 1;
                state.detached_since = self.now();
            }
        }
        Begin::Started(answer)
    }

    pub(super) fn take_turn(&self, kind: TurnKind, hold: ChainHold) -> Result<TurnAnswer, Refusal> {
        self.lock()
            .turns
            .take(kind, hold, self.host.options.max_waiting)
    }

    /// Takes a turn if it can be had without waiting.
    pub(super) fn take_free_turn(&self, kind: TurnKind) -> Option<Turn> {
        match self.lock().turns.take(kind, ChainHold::Nothing, 0) {
            Ok(TurnAnswer::Granted(turn)) => Some(turn),
            _ => None,
        }
    }

    pub(super) fn forget_waiters(&self) {
        self.lock().turns.forget_gone();
    }

    /// Stops admission of turns for the teardown.
    pub(super) fn seal_turns(&self) {
        self.lock().turns.seal();
    }

    pub(super) fn turns_are_free(&self) -> bool {
        self.lock().turns.is_free()
    }

    /// Work ends, a turn comes back, or both.
    pub(super) fn finish_work(&self, work: Option<Work>, turn: Option<Turn>, torn: bool) {
        let Some(work) = work else {
            return self.take_turn_back(turn, torn);
        };
        let now = self.now();
        let mut state = self.lock();
        let mut job = self.take_back_locked(&mut state, turn, torn);
        match work.class {
            WorkClass::Handler => state.handlers -= 1,
            WorkClass::Stream => {
                state.sockets -= 1;
                state.detached_since = now;
            }
        }
        state.last_activity = now;
        job = job.or_else(|| self.settle_locked(&mut state, now));
        drop(state);
        self.launch(job);
        self.sample(work, now);
    }

    /// A turn comes back with which no work ends: that of its holder goes on, or its holder is none that counts.
    ///
    /// Neither idleness nor a wind-down waits for turns ([`State::is_working`]), so nothing is to be settled, and no clock to
    /// be read; only a teardown waits for them.
    fn take_turn_back(&self, turn: Option<Turn>, torn: bool) {
        let mut state = self.lock();
        let job = self.take_back_locked(&mut state, turn, torn);
        let closing = matches!(state.phase, Phase::Closing(_));
        drop(state);
        if closing {
            self.changed.notify_waiters();
        }
        self.launch(job);
    }

    /// Takes a turn back. A torn value first closes the instance, which seals the turns: nobody may be granted it.
    fn take_back_locked(
        &self,
        state: &mut State,
        turn: Option<Turn>,
        torn: bool,
    ) -> Option<CloseJob> {
        let job = if torn {
            self.close_locked(state, CloseKind::Cancelling)
        } else {
            None
        };
        if let Some(turn) = turn {
            state.turns.give_back(turn);
        }
        job
    }

    fn sample(&self, work: Work, now: Instant) {
        if let Some(started) = work.started {
            self.host
                .metrics
                .took(now.saturating_duration_since(started));
        }
    }

    /// A handler's answer goes on as a streaming body.
    pub(super) fn finish_into_stream(
        &self,
        work: Work,
        turn: Option<Turn>,
        stream: Arc<dyn OpenStream>,
    ) -> Option<u64> {
        let now = self.now();
        let mut state = self.lock();
        if let Some(turn) = turn {
            state.turns.give_back(turn);
        }
        state.handlers -= 1;
        state.last_activity = now;
        state.detached_since = now;
        // Only after the record is fully closed does a stream end at once (H6.9).
        let key = (self.stage() < Stage::CutAll).then(|| {
            let key = state.next_stream;
            state.next_stream += 1;
            state.streams.insert(key, stream);
            key
        });
        let job = self.settle_locked(&mut state, now);
        drop(state);
        self.launch(job);
        self.sample(work, now);
        key
    }

    pub(super) fn stream_progressed(&self) {
        let now = self.now();
        self.lock().last_activity = now;
    }

    pub(super) fn stream_ended(self: &Arc<Self>, key: u64) {
        let now = self.now();
        let mut state = self.lock();
        if state.streams.remove(&key).is_none() {
            return;
        }
        state.last_activity = now;
        state.detached_since = now;
        let job = self.settle_locked(&mut state, now);
        drop(state);
        self.launch(job);
    }

    /// Counts a task, and says at which stage it is cut off: the cut of running work is not meant for what a cleanup
    /// or a teardown spawns (H7.3).
    pub(super) fn task_started(&self) -> Stage {
        let mut state = self.lock();
        if !state.phase.is_open() {
            state.late_tasks += 1;
            return Stage::CutAll;
        }
        state.tasks += 1;
        state.idle_told = false;
        Stage::CutWork
    }

    /// `cut` is what [`Record::task_started`] said.
    pub(super) fn task_ended(self: &Arc<Self>, cut: Stage) {
        let now = self.now();
        let mut state = self.lock();
        match cut {
            Stage::CutAll => state.late_tasks -= 1,
            Stage::CutWork | Stage::CutDraining | Stage::Running => state.tasks -= 1,
        }
        state.last_activity = now;
        let job = self.settle_locked(&mut state, now);
        drop(state);
        self.launch(job);
    }

    /// An admitted request leaves without having begun; the last one out of a cold record discards it (H2.17, H2.18).
    pub(super) fn leave(self: &Arc<Self>) {
        let mut state = self.lock();
        state.attached -= 1;
        let job = if state.attached == 0 && matches!(state.phase, Phase::Cold) {
            self.close_locked(&mut state, CloseKind::Cancelling)
        } else {
            None
        };
        drop(state);
        self.launch(job);
    }
}
