//! The queue of turns: shared beside shared, exclusive alone, first come, first served.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::api::chain::ChainHold;
use crate::api::definition::AnyValue;
use crate::api::refusal::Refusal;
use crate::api::seam::{Turn, TurnAnswer, TurnKind};

/// Who holds the turns of one instance, and who waits. Stands behind the record's lock.
///
/// It owns the instance's value and hands it out with the turns, so that nobody can reach the value without one.
#[derive(Default)]
#[repr(C)]
pub(super) struct Turns {
    /// Absent before setup, after teardown, and while an exclusive turn is out.
    value: Option<AnyValue>,
    holders: Holders,
    sealed: bool,
    /// Out of the way, because mostly nobody waits.
    waiting: Option<Box<Queue>>,
}

#[derive(Default)]
struct Queue(VecDeque<Waiter>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Holders {
    #[default]
    None,
    Shared(u32),
    Exclusive,
}

impl Holders {
    /// The holders with one more of `kind`, unless they exclude it.
    fn with(self, kind: TurnKind) -> Option<Self> {
        match (self, kind) {
            (Self::None, TurnKind::Exclusive) => Some(Self::Exclusive),
            (Self::None, TurnKind::Shared) => Some(Self::Shared(1)),
            (Self::Shared(n), TurnKind::Shared) => Some(Self::Shared(n.checked_add(1)?)),
            (Self::Shared(_), TurnKind::Exclusive) | (Self::Exclusive, _) => None,
        }
    }

    fn without(self, kind: TurnKind) -> Self {
        match (self, kind) {
            (Self::Shared(n), TurnKind::Shared) if n > 1 => Self::Shared(n - 1),
            _ => Self::None,
        }
    }
}

struct Waiter {
    kind: TurnKind,
    answer: oneshot::Sender<Result<Turn, Refusal>>,
}

impl Turns {
    /// Asks for a turn.
    pub(super) fn take(
        &mut self,
        kind: TurnKind,
        hold: ChainHold,
        max_waiting: usize,
    ) -> Result<TurnAnswer, Refusal> {
        if self.sealed {
            return Err(Refusal::Closing);
        }
        let may_pass = match (hold, kind) {
            (ChainHold::Nothing, _) => self.waiting() == 0,
            (ChainHold::Shared, TurnKind::Shared) => true,
            (ChainHold::Shared | ChainHold::Exclusive, _) => {
                return Err(Refusal::CallChain(String::new()));
            }
        };
        if may_pass && let Some(turn) = self.hand_out(kind) {
            return Ok(TurnAnswer::Granted(turn));
        }
        if self.waiting() >= max_waiting {
            self.forget_gone();
            if self.waiting() >= max_waiting {
                return Err(Refusal::TurnQueue);
            }
        }
        let (answer, receiver) = oneshot::channel();
        let queue = self.waiting.get_or_insert_default();
        queue.0.push_back(Waiter { kind, answer });
        Ok(TurnAnswer::Queued(receiver))
    }

    fn waiting(&self) -> usize {
        self.waiting.as_ref().map_or(0, |queue| queue.0.len())
    }

    /// The instance has been set up.
    pub(super) fn put(&mut self, value: AnyValue) {
        self.value = Some(value);
    }

    /// The value, for its teardown; `None` while a turn is out, or when there is none.
    pub(super) fn retire(&mut self) -> Option<AnyValue> {
        self.value.take_if(|_| self.holders == Holders::None)
    }

    /// Gives a turn back, and hands out what that frees.
    pub(super) fn give_back(&mut self, turn: Turn) {
        self.take_back(turn);
        self.grant();
    }

    fn take_back(&mut self, turn: Turn) {
        self.holders = self.holders.without(turn.kind);
        if turn.kind == TurnKind::Exclusive {
            self.value = Some(turn.value);
        }
    }

    fn hand_out(&mut self, kind: TurnKind) -> Option<Turn> {
        let holders = self.holders.with(kind)?;
        let value = match kind {
            TurnKind::Shared => self.value.clone()?,
            TurnKind::Exclusive => self.value.take()?,
        };
        self.holders = holders;
        Some(Turn { kind, value })
    }

    /// Drops waiters that went away, and hands out what one of them held up.
    pub(super) fn forget_gone(&mut self) {
        if let Some(queue) = &mut self.waiting {
            queue.0.retain(|waiter| !waiter.answer.is_closed());
            self.grant();
        }
    }

    /// Refuses every waiter and whoever asks from here on: the value is about to be torn down.
    pub(super) fn seal(&mut self) {
        self.sealed = true;
        let Some(queue) = self.waiting.take() else {
            return;
        };
        for waiter in queue.0 {
            // One that went away needs no answer.
            let _ = waiter.answer.send(Err(Refusal::Closing));
        }
    }

    /// Whether nobody holds a turn.
    pub(super) fn is_free(&self) -> bool {
        self.holders == Holders::None
    }

    fn next_kind(&self) -> Option<TurnKind> {
        Some(self.waiting.as_ref()?.0.front()?.kind)
    }

    fn grant(&mut self) {
        while let Some(kind) = self.next_kind()
            && let Some(turn) = self.hand_out(kind)
        {
            let Some(waiter) = self.waiting.as_mut().and_then(|queue| queue.0.pop_front()) else {
                self.take_back(turn);
                return;
            };
            // A waiter that went away in this moment does not hold the turn up.
            if let Err(Ok(turn)) = waiter.answer.send(Ok(turn)) {
                self.take_back(turn);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn turns() -> Turns {
        let mut turns = Turns::default();
        turns.put(Arc::new(()));
        turns
    }

    fn ask(turns: &mut Turns, kind: TurnKind, max_waiting: usize) -> Result<TurnAnswer, Refusal> {
        turns.take(kind, ChainHold::Nothing, max_waiting)
    }

    fn granted(turns: &mut Turns, kind: TurnKind) -> Turn {
        match ask(turns, kind, 8) {
            Ok(TurnAnswer::Granted(turn)) => turn,
            _ => panic!("not granted"),
        }
    }

    fn queued(turns: &mut Turns, kind: TurnKind) -> oneshot::Receiver<Result<Turn, Refusal>> {
        match ask(turns, kind, 8) {
            Ok(TurnAnswer::Queued(receiver)) => receiver,
            _ => panic!("not queued"),
        }
    }

    #[test]
    fn a_reader_behind_a_waiting_writer_waits_for_it() {
        let mut turns = turns();
        let first = granted(&mut turns, TurnKind::Shared);
        let mut writer = queued(&mut turns, TurnKind::Exclusive);
        let mut reader = queued(&mut turns, TurnKind::Shared);
        turns.give_back(first);
        let Ok(Ok(turn)) = writer.try_recv() else {
            panic!("the writer is next")
        };
        assert!(reader.try_recv().is_err());
        turns.give_back(turn);
        assert!(reader.try_recv().is_ok());
    }

    #[test]
    fn an_exclusive_turn_holds_the_only_reference() {
        let mut turns = turns();
        let first = granted(&mut turns, TurnKind::Shared);
        let second = granted(&mut turns, TurnKind::Shared);
        turns.give_back(first);
        turns.give_back(second);
        let mut writer = granted(&mut turns, TurnKind::Exclusive);
        assert!(Arc::get_mut(&mut writer.value).is_some());
    }

    #[test]
    fn a_reader_within_a_reader_of_its_chain_passes_a_waiting_writer() {
        let mut turns = turns();
        let _first = granted(&mut turns, TurnKind::Shared);
        let _writer = queued(&mut turns, TurnKind::Exclusive);
        let nested = turns.take(TurnKind::Shared, ChainHold::Shared, 8);
        assert!(matches!(nested, Ok(TurnAnswer::Granted(_))));
    }

    #[test]
    fn what_an_ancestor_holds_exclusively_is_refused() {
        let mut turns = turns();
        let _held = granted(&mut turns, TurnKind::Exclusive);
        let nested = turns.take(TurnKind::Shared, ChainHold::Exclusive, 8);
        assert!(matches!(nested, Err(Refusal::CallChain(_))));
    }

    #[test]
    fn a_writer_that_went_away_does_not_hold_up_readers() {
        let mut turns = turns();
        let _first = granted(&mut turns, TurnKind::Shared);
        let writer = queued(&mut turns, TurnKind::Exclusive);
        let mut reader = queued(&mut turns, TurnKind::Shared);
        drop(writer);
        turns.forget_gone();
        assert!(reader.try_recv().is_ok());
    }

    #[test]
    fn a_turn_granted_to_one_who_went_away_goes_to_the_next() {
        let mut turns = turns();
        let first = granted(&mut turns, TurnKind::Exclusive);
        let gone = queued(&mut turns, TurnKind::Exclusive);
        let mut next = queued(&mut turns, TurnKind::Exclusive);
        drop(gone);
        turns.give_back(first);
        assert!(matches!(next.try_recv(), Ok(Ok(_))));
    }

    #[test]
    fn waiting_is_bounded_and_those_who_left_do_not_count() {
        let mut turns = turns();
        let _held = granted(&mut turns, TurnKind::Exclusive);
        let first = ask(&mut turns, TurnKind::Shared, 1);
        assert!(matches!(first, Ok(TurnAnswer::Queued(_))));
        let refused = ask(&mut turns, TurnKind::Shared, 1);
        assert!(matches!(refused, Err(Refusal::TurnQueue)));
        drop(first);
        assert!(ask(&mut turns, TurnKind::Shared, 1).is_ok());
    }

    #[test]
    fn sealing_refuses_waiters_and_newcomers_and_the_value_retires_once_free() {
        let mut turns = turns();
        let held = granted(&mut turns, TurnKind::Exclusive);
        let mut waiter = queued(&mut turns, TurnKind::Shared);
        turns.seal();
        assert!(matches!(waiter.try_recv(), Ok(Err(Refusal::Closing))));
        let refused = ask(&mut turns, TurnKind::Shared, 8);
        assert!(matches!(refused, Err(Refusal::Closing)));
        assert!(!turns.is_free() && turns.retire().is_none());
        turns.give_back(held);
        assert!(turns.is_free() && turns.retire().is_some());
        assert!(turns.retire().is_none());
    }
}
