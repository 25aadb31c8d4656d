//! What is enlisted, how far it is durable, and who waits for it.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::task::Waker;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::error::{FrontierError, FrontierFailure};
use super::receipt::Wait;
use crate::durability::claim::TrayKey;
use crate::durability::row::{RowOp, RowState};
use crate::error::BoxError;

pub(super) type OpaqueEffect = BoxFuture<'static, Result<(), BoxError>>;

/// The log of one frontier, behind its reentrant lock. Nobody calls out while the cell is borrowed.
#[derive(Default)]
pub(super) struct LogCell(RefCell<Log>);

#[derive(Default)]
struct Log {
    state: State,
    /// How many segments are open, one within the other, on the thread that holds the lock.
    depth: u32,
    /// What the open segment has changed: the last state of each row, in the order of their first changes.
    staged: Vec<RowOp>,
    /// What is enlisted and not on its way yet.
    queue: VecDeque<Unit>,
    /// The position of the effect that was enlisted last.
    enlisted: u64,
    /// Everything up to here is durable.
    durable: u64,
    /// Ascending by position.
    waiting: VecDeque<(u64, oneshot::Sender<Result<(), FrontierError>>)>,
    flushing: bool,
    /// Of the flusher while it lingers.
    lingering: Option<Waker>,
}

/// What the end of a segment asks for, once no lock is held.
pub(super) enum Ask {
    Nothing,
    /// A flusher, which is not there.
    Start,
    /// The one that lingers, at once.
    Wake(Waker),
}

#[derive(Default)]
enum State {
    #[default]
    Open,
    Failed(Arc<FrontierFailure>),
    Closed,
}

/// What goes to the store in one step.
pub(super) enum Unit {
    Rows(Run),
    Effect(OpaqueEffect),
}

/// A run of row writes. With batches each row stands in it once, at the place of its last write (D14.4): so however
/// much is enlisted, what waits is bounded by the number of rows.
#[derive(Default)]
pub(super) struct Run {
    slots: VecDeque<Option<RowOp>>,
    /// Where the rows stand; empty while there are so [few](FEW) of them that looking costs less.
    places: HashMap<TrayKey, usize>,
    /// How many writes were enlisted, collapsed ones included (D14.7).
    effects: u64,
}

/// Most runs are of one row.
const FEW: usize = 8;

impl Run {
    fn push(&mut self, op: RowOp, collapse: bool) {
        self.effects += 1;
        if !collapse {
            self.slots.push_back(Some(op));
            return;
        }
        if let Some(earlier) = self.place_of(&op.key) {
            self.slots[earlier] = None;
        }
        if !self.places.is_empty() {
            self.places.insert(op.key.clone(), self.slots.len());
        }
        self.slots.push_back(Some(op));
        if self.slots.len() > FEW.max(2 * self.places.len()) {
            self.compact();
        }
    }

    fn place_of(&self, key: &TrayKey) -> Option<usize> {
        if !self.places.is_empty() {
            return self.places.get(key).copied();
        }
        let is_of = |op: &Option<RowOp>| op.as_ref().is_some_and(|op| op.key == *key);
        self.slots.iter().position(is_of)
    }

    /// Takes the first write off a run that is not collapsed.
    fn pop_first(&mut self) -> Option<Self> {
        let first = self.slots.pop_front()?;
        self.effects -= 1;
        Some(Self {
            slots: [first].into(),
            places: HashMap::new(),
            effects: 1,
        })
    }

    fn compact(&mut self) {
        self.slots.retain(Option::is_some);
        if self.slots.len() <= FEW && self.places.is_empty() {
            return;
        }
        for (place, op) in self.slots.iter().flatten().enumerate() {
            self.places.insert(op.key.clone(), place);
        }
    }

    /// The writes in their order, and how many effects they stand for.
    pub(super) fn into_ops(self) -> (Vec<RowOp>, u64) {
        (self.slots.into_iter().flatten().collect(), self.effects)
    }
}

/// What is let go of when a log ends; dropped where no lock is held.
pub(super) struct Dropped {
    _queue: VecDeque<Unit>,
}

impl LogCell {
    pub(super) fn last_position(&self) -> u64 {
        let log = self.0.borrow();
        log.enlisted + log.staged.len() as u64
    }

    pub(super) fn durable(&self) -> u64 {
        self.0.borrow().durable
    }

    /// Whether anything may be enlisted.
    pub(super) fn check(&self) -> Result<(), FrontierError> {
        match &self.0.borrow().state {
            State::Open => Ok(()),
            State::Failed(failure) => Err(FrontierError::Poisoned(Arc::clone(failure))),
            State::Closed => Err(FrontierError::Closed),
        }
    }

    pub(super) fn wait(&self, position: u64) -> Wait {
        let checked = self.check();
        let mut log = self.0.borrow_mut();
        match checked {
            // D16.3: a log that has failed says so of everything. One that was closed still knows what is durable.
            Err(FrontierError::Closed) | Ok(()) if position <= log.durable => {
                return Wait::ready(Ok(()));
            }
            Err(error) => return Wait::ready(Err(error)),
            Ok(()) => {}
        }
        if log.waiting.len() == log.waiting.capacity() {
            // Before it grows: a store that stalls must not make waits pile up that were given up.
            log.waiting.retain(|(_, waiter)| !waiter.is_closed());
        }
        let (sender, receiver) = oneshot::channel();
        // Mostly the newest: those that wait longer stand in front.
        let place = log.waiting.partition_point(|(other, _)| *other <= position);
        log.waiting.insert(place, (position, sender));
        Wait::pending(receiver)
    }

    /// What was enlisted before the segment, if it is the outermost one.
    pub(super) fn enter(&self) -> Option<u64> {
        let mut log = self.0.borrow_mut();
        log.depth += 1;
        (log.depth == 1).then_some(log.enlisted)
    }

    /// The end of a segment; the outermost one enlists what was staged.
    pub(super) fn leave(&self, collapse: bool) -> Ask {
        let mut log = self.0.borrow_mut();
        log.depth -= 1;
        if log.depth > 0 {
            return Ask::Nothing;
        }
        log.enlist_staged(collapse);
        if log.queue.is_empty() || !matches!(log.state, State::Open) {
            return Ask::Nothing;
        }
        if !log.flushing {
            log.flushing = true;
            return Ask::Start;
        }
        log.lingering.take().map_or(Ask::Nothing, Ask::Wake)
    }

    pub(super) fn stage(&self, key: TrayKey, state: Option<RowState>) {
        let mut log = self.0.borrow_mut();
        match log.staged.iter_mut().rev().find(|op| op.key == key) {
            Some(op) => op.state = state,
            None => log.staged.push(RowOp { key, state }),
        }
    }

    pub(super) fn stage_anew(&self, key: TrayKey, state: Option<RowState>) {
        self.0.borrow_mut().staged.push(RowOp { key, state });
    }

    /// After what the open segment has changed so far.
    pub(super) fn enlist_effect(&self, effect: OpaqueEffect, collapse: bool) {
        let mut log = self.0.borrow_mut();
        log.enlist_staged(collapse);
        log.enlisted += 1;
        log.queue.push_back(Unit::Effect(effect));
    }

    /// The next step of the flusher; `None` ends it, unless it `lingers`. Never called within a segment, because the lock is
    /// held there.
    pub(super) fn next(&self, batches: bool, lingers: bool) -> Option<Unit> {
        let mut log = self.0.borrow_mut();
        let open = matches!(log.state, State::Open);
        let unit = match log.queue.front_mut() {
            Some(Unit::Rows(run)) if open && !batches && run.slots.len() > 1 => {
                run.pop_first().map(Unit::Rows)
            }
            Some(_) if open => log.queue.pop_front(),
            _ => None,
        };
        log.flushing = unit.is_some() || (lingers && open);
        log.lingering = None;
        unit
    }

    /// The flusher lingers, and wants to be woken by what comes.
    pub(super) fn linger(&self, waker: Waker) {
        self.0.borrow_mut().lingering = Some(waker);
    }

    /// A flusher that lingered is gone; whether it had nothing left to do.
    pub(super) fn rest(&self) -> bool {
        let mut log = self.0.borrow_mut();
        log.lingering = None;
        if log.queue.is_empty() {
            log.flushing = false;
        }
        log.queue.is_empty()
    }

    /// `effects` more are durable.
    pub(super) fn advance(&self, effects: u64) {
        let mut log = self.0.borrow_mut();
        log.durable += effects;
        while log
            .waiting
            .front()
            .is_some_and(|(position, _)| *position <= log.durable)
        {
            if let Some((_, waiter)) = log.waiting.pop_front() {
                // Nobody listens any more when the wait was given up.
                let _ = waiter.send(Ok(()));
            }
        }
    }

    /// Ends an open log with a failure: the error of those who wait, and what is let go of.
    pub(super) fn fail(&self, failure: FrontierFailure) -> Option<(FrontierError, Dropped)> {
        let mut log = self.0.borrow_mut();
        if !matches!(log.state, State::Open) {
            return None;
        }
        let failure = Arc::new(failure);
        log.state = State::Failed(Arc::clone(&failure));
        let error = FrontierError::Failed(failure);
        Some((error.clone(), log.end(&error)))
    }

    pub(super) fn close(&self) -> Dropped {
        let mut log = self.0.borrow_mut();
        if matches!(log.state, State::Open) {
            log.state = State::Closed;
        }
        log.end(&FrontierError::Closed)
    }
}

impl Log {
    fn enlist_staged(&mut self, collapse: bool) {
        if self.staged.is_empty() {
            return;
        }
        let staged = mem::take(&mut self.staged);
        if !matches!(self.state, State::Open) {
            return;
        }
        self.enlisted += staged.len() as u64;
        if !matches!(self.queue.back(), Some(Unit::Rows(_))) {
            self.queue.push_back(Unit::Rows(Run::default()));
        }
        if let Some(Unit::Rows(run)) = self.queue.back_mut() {
            for op in staged {
                run.push(op, collapse);
            }
        }
    }

    fn end(&mut self, error: &FrontierError) -> Dropped {
        self.flushing = false;
        for (_, waiter) in self.waiting.drain(..) {
            let _ = waiter.send(Err(error.clone()));
        }
        Dropped {
            _queue: mem::take(&mut self.queue),
        }
    }
}

#[cfg(test)]
impl LogCell {
    /// How many waits are kept.
    pub(super) fn waiting(&self) -> usize {
        self.0.borrow().waiting.len()
    }

    /// What `measure` says of everything that is queued.
    pub(super) fn queued(&self, measure: impl Fn(&Unit) -> usize) -> usize {
        self.0.borrow().queue.iter().map(measure).sum()
    }
}

#[cfg(test)]
impl Run {
    /// How many places are kept, empty ones included.
    pub(super) fn kept(&self) -> usize {
        self.slots.len()
    }
}
