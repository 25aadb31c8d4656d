//! One instance: a state machine behind one lock.
//!
//! Every 'check, then act' of the hosting rules is one method here that takes the lock once. What a transition sets
//! in motion (a close, callbacks, timers) is returned as an effect and carried out after the lock is free; no lock is
//! ever held across an await, and the record's lock is never held while the directory's is taken.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::activation::Activation;
use super::close::CloseKind;
use super::core::Host;
use super::fence::Fence;
use super::timers::TimerKey;
use super::turns::Turns;
use super::wind_down::{Reported, Slot};
use crate::api::lease::LeaseHooks;
use crate::api::refusal::Refusal;
use crate::api::scope::ChainHold;
use crate::api::seam::{Begin, OpenStream, Turn, TurnAnswer, TurnKind, Work, WorkClass};
use crate::durability::EffectLog;

/// One instance of one id.
pub(crate) struct Record {
    this: Weak<Self>,
    pub(super) host: Arc<Host>,
    id: Box<str>,
    pub(super) log: Option<Arc<dyn EffectLog>>,
    state: Mutex<State>,
    /// How much of the running work is cut off; only ever raised.
    stage: AtomicU8,
    /// Told of a raised stage, of settled work while closing, and of the end of the close.
    pub(super) changed: Notify,
}

/// How much of an instance's running work is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Stage {
    Running,
    /// Handlers and tasks (H11.3, the cancelling close).
    CutWork,
    /// Everything that is left (H11.3, the last step).
    CutAll,
}

/// Where an instance stands between its construction and its end.
pub(super) enum Phase {
    /// Constructed; its setup has not begun.
    Cold,
    /// Its setup runs, or waits to.
    Activating(Arc<Activation>),
    Live,
    Closing(Closing),
    /// Out of the directory.
    Closed,
}

impl Phase {
    /// Before any close: what timers may still be set for.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Cold | Self::Activating(_) | Self::Live)
    }
}

/// A close under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    /// Whether the placement is to be handed back (H11.2, H13).
    pub(super) releasing: bool,
}

pub(super) struct State {
    pub(super) phase: Phase,
    /// Requests before the instance: authorizing, extracting, waiting for the activation.
    attached: u32,
    handlers: u32,
    tasks: u32,
    /// Tasks that were spawned when the close had been decided (H7.3).
    late_tasks: u32,
    sockets: u32,
    streams: BTreeMap<u64, Arc<dyn OpenStream>>,
    next_stream: u64,
    pub(super) turns: Turns,
    pub(super) last_activity: Instant,
    /// Since when there has been no stream work (H9.2).
    pub(super) detached_since: Instant,
    /// What is known of the id's epochs; a request that is refused may have moved it ahead of `epoch`.
    pub(super) fence: Option<Fence>,
    /// The epoch that this instance serves at, and hands back (H3.11, H11.7).
    pub(super) epoch: Option<u64>,
    pub(super) local: Option<Slot>,
    pub(super) operator: Option<Slot>,
    pub(super) reported: Reported,
    pub(super) reporting: bool,
    pub(super) hooks: LeaseHooks,
    /// `on_idle` has been told of this idle spell (H8.5).
    pub(super) idle_told: bool,
    pub(super) activated_at: Option<SystemTime>,
    pub(super) idle_timer: Option<TimerKey>,
    pub(super) deadline_timer: Option<TimerKey>,
}

/// Counts of one record for the stats row (W10.4).
pub(crate) struct RecordStats {
    pub(crate) connections: u32,
    pub(crate) tasks: u32,
    pub(crate) idle: Duration,
    pub(crate) activated_at: Option<SystemTime>,
}

/// What came of an admission to a record that exists.
pub(super) enum Admission {
    Admitted,
    Refused(Refusal),
    /// A close is under way that may be waited for (H3.9).
    AwaitClose,
    /// The record has left the directory meanwhile.
    Gone,
}

impl Record {
    /// A cold record with its first request attached.
    pub(super) fn new(host: Arc<Host>, id: &str, fence: Option<Fence>) -> Arc<Self> {
        let now = host.env.domain.monotonic();
        let epoch = fence.map(|fence| fence.epoch);
        let log = host
            .env
            .durability
            .as_ref()
            .map(|store| store.open(&host.namespace, id, epoch.unwrap_or(0)));
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            host,
            id: id.into(),
            log,
            state: Mutex::new(State {
                phase: Phase::Cold,
                attached: 1,
                handlers: 0,
                tasks: 0,
                late_tasks: 0,
                sockets: 0,
                streams: BTreeMap::new(),
                next_stream: 0,
                turns: Turns::default(),
                last_activity: now,
                detached_since: now,
                fence,
                epoch,
                local: None,
                operator: None,
                reported: Reported::default(),
                reporting: false,
                hooks: LeaseHooks::default(),
                idle_told: false,
                activated_at: None,
                idle_timer: None,
                deadline_timer: None,
            }),
            stage: AtomicU8::new(Stage::Running as u8),
            changed: Notify::new(),
        })
    }

    /// The record itself, for what outlives the caller's hold on it.
    pub(super) fn this(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    pub(super) fn key(&self) -> &str {
        &self.id
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn now(&self) -> Instant {
        self.host.env.domain.monotonic()
    }

    /// Admits one more request (H3.3, H3.8, H3.9, H3.11).
    pub(super) fn admit(&self, epoch: Option<u64>) -> Admission {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Closed) {
            return Admission::Gone;
        }
        if let Some(epoch) = epoch
            && let Err(refusal) = Fence::admit(&mut state.fence, epoch)
        {
            return Admission::Refused(refusal);
        }
        if self.is_past_deadline(&state) {
            return Admission::Refused(Refusal::PastDeadline);
        }
        match &state.phase {
            Phase::Closing(closing) => {
                if self.host.env.is_placed() && closing.releasing {
                    Admission::Refused(Refusal::Closing)
                } else {
                    Admission::AwaitClose
                }
            }
            _ => {
                if epoch > state.epoch {
                    self.adopt_epoch(&mut state, epoch);
                }
                state.attached += 1;
                Admission::Admitted
            }
        }
    }

    /// The placement has moved on while the instance lived: it serves, writes and is handed back at the new epoch
    /// from here on (H3.11).
    fn adopt_epoch(&self, state: &mut State, epoch: Option<u64>) {
        state.epoch = epoch;
        if let Some((log, epoch)) = self.log.as_ref().zip(epoch) {
            log.advance_epoch(epoch);
        }
    }

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
        let now = self.now();
        let mut state = self.lock();
        // Closing, which seals the turns, before this one is handed on: nobody may be granted a torn value.
        let mut job = if torn {
            self.close_locked(&mut state, CloseKind::Cancelling)
        } else {
            None
        };
        if let Some(turn) = turn {
            state.turns.give_back(turn);
        }
        if let Some(work) = work {
            match work.class {
                WorkClass::Handler => state.handlers -= 1,
                WorkClass::Stream => {
                    state.sockets -= 1;
                    state.detached_since = now;
                }
            }
            state.last_activity = now;
        }
        job = job.or_else(|| self.settle_locked(&mut state, now));
        drop(state);
        self.launch(job);
        self.sample(work, now);
    }

    fn sample(&self, work: Option<Work>, now: Instant) {
        if let Some(started) = work.and_then(|work| work.started) {
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
        self.sample(Some(work), now);
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
            Stage::CutWork | Stage::Running => state.tasks -= 1,
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

    /// The streams that are open, for the last step of the close. They count no more: a client that has stalled may
    /// let go of its end at any later time.
    pub(super) fn take_streams(&self) -> impl Iterator<Item = Arc<dyn OpenStream>> + use<> {
        std::mem::take(&mut self.lock().streams).into_values()
    }

    pub(super) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Running,
            1 => Stage::CutWork,
            _ => Stage::CutAll,
        }
    }

    pub(super) fn raise_stage(&self, stage: Stage) {
        if self.stage.fetch_max(stage as u8, Ordering::AcqRel) < stage as u8 {
            self.changed.notify_waiters();
        }
    }

    /// Waits until `done` holds; it is looked at again after each change.
    pub(super) async fn wait_until(&self, mut done: impl FnMut(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if done(self) {
                return;
            }
            changed.await;
        }
    }

    /// Waits for a close that may turn out to keep the placement: whether it still may be waited for (H3.9).
    pub(super) async fn wait_for_successor(&self) -> Result<(), Refusal> {
        let placed = self.host.env.is_placed();
        let mut refused = false;
        self.wait_until(|record| match &record.lock().phase {
            Phase::Closed => true,
            Phase::Closing(closing) if placed && closing.releasing => {
                refused = true;
                true
            }
            _ => false,
        })
        .await;
        if refused {
            Err(Refusal::Closing)
        } else {
            Ok(())
        }
    }

    pub(crate) fn stats(&self) -> RecordStats {
        let now = self.now();
        let state = self.lock();
        RecordStats {
            connections: state.connections(),
            tasks: state.handlers + state.tasks + state.late_tasks,
            idle: now.saturating_duration_since(state.last_activity),
            activated_at: state.activated_at,
        }
    }
}

impl State {
    /// Whether handlers or tasks run: what a wind-down waits for (H8.3).
    pub(super) fn is_working(&self) -> bool {
        self.handlers > 0 || self.tasks > 0
    }

    /// Whether a stream or a WebSocket is open.
    pub(super) fn is_streaming(&self) -> bool {
        self.sockets > 0 || !self.streams.is_empty()
    }

    /// Whether anything at all runs; streams aside, which end without anybody's help.
    pub(super) fn has_work(&self) -> bool {
        self.is_working() || self.late_tasks > 0 || self.sockets > 0
    }

    fn connections(&self) -> u32 {
        let streams = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        self.sockets.saturating_add(streams)
    }
}
