//! The queue of turns: shared beside shared, exclusive alone, first come, first served.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::api::refusal::Refusal;
use crate::api::scope::ChainHold;
use crate::api::seam::{TurnAnswer, TurnKind};

/// Who holds the turns of one instance, and who waits. Stands behind the record's lock.
#[derive(Default)]
pub(super) struct Turns {
    holders: Holders,
    waiting: VecDeque<Waiter>,
    sealed: bool,
}

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
    answer: oneshot::Sender<Result<(), Refusal>>,
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
            (ChainHold::Nothing, _) => self.waiting.is_empty(),
            (ChainHold::Shared, TurnKind::Shared) => true,
            (ChainHold::Shared | ChainHold::Exclusive, _) => {
                return Err(Refusal::CallChain(String::new()));
            }
        };
        if may_pass && let Some(holders) = self.holders.with(kind) {
            self.holders = holders;
            return Ok(TurnAnswer::Granted);
        }
        if self.waiting.len() >= max_waiting {
            self.forget_gone();
            if self.waiting.len() >= max_waiting {
                return Err(Refusal::TurnQueue);
            }
        }
        let (answer, receiver) = oneshot::channel();
        self.waiting.push_back(Waiter { kind, answer });
        Ok(TurnAnswer::Queued(receiver))
    }

    /// Gives a turn back, and hands out what that frees.
    pub(super) fn give_back(&mut self, kind: TurnKind) {
        self.holders = self.holders.without(kind);
        self.grant();
    }

    /// Drops waiters that went away, and hands out what one of them held up.
    pub(super) fn forget_gone(&mut self) {
        self.waiting.retain(|waiter| !waiter.answer.is_closed());
        self.grant();
    }

    /// Refuses every waiter and whoever asks from here on: the value is about to be torn down.
    pub(super) fn seal(&mut self) {
        self.sealed = true;
        for waiter in self.waiting.drain(..) {
            // One that went away needs no answer.
            let _ = waiter.answer.send(Err(Refusal::Closing));
        }
    }

    /// Whether nobody holds a turn.
    pub(super) fn is_free(&self) -> bool {
        self.holders == Holders::None
    }

    fn grant(&mut self) {
        while let Some(holders) = self
            .waiting
            .front()
            .and_then(|waiter| self.holders.with(waiter.kind))
        {
            let Some(waiter) = self.waiting.pop_front() else {
                return;
            };
            // A waiter that went away in this moment does not hold the turn up.
            if waiter.answer.send(Ok(())).is_ok() {
                self.holders = holders;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(turns: &mut Turns, kind: TurnKind) -> TurnAnswer {
        turns
            .take(kind, ChainHold::Nothing, 8)
            .expect("not refused")
    }

    fn queued(answer: TurnAnswer) -> oneshot::Receiver<Result<(), Refusal>> {
        match answer {
            TurnAnswer::Queued(receiver) => receiver,
            TurnAnswer::Granted => panic!("granted"),
        }
    }

    #[test]
    fn a_reader_behind_a_waiting_writer_waits_for_it() {
        let mut turns = Turns::default();
        assert!(matches!(
            take(&mut turns, TurnKind::Shared),
            TurnAnswer::Granted
        ));
        let mut writer = queued(take(&mut turns, TurnKind::Exclusive));
        let mut reader = queued(take(&mut turns, TurnKind::Shared));
        turns.give_back(TurnKind::Shared);
        assert!(writer.try_recv().is_ok());
        assert!(reader.try_recv().is_err());
        turns.give_back(TurnKind::Exclusive);
        assert!(reader.try_recv().is_ok());
    }

    #[test]
    fn a_reader_within_a_reader_of_its_chain_passes_a_waiting_writer() {
        let mut turns = Turns::default();
        assert!(matches!(
            take(&mut turns, TurnKind::Shared),
            TurnAnswer::Granted
        ));
        let _writer = queued(take(&mut turns, TurnKind::Exclusive));
        let nested = turns.take(TurnKind::Shared, ChainHold::Shared, 8);
        assert!(matches!(nested, Ok(TurnAnswer::Granted)));
    }

    #[test]
    fn what_an_ancestor_holds_exclusively_is_refused() {
        let mut turns = Turns::default();
        assert!(matches!(
            take(&mut turns, TurnKind::Exclusive),
            TurnAnswer::Granted
        ));
        let nested = turns.take(TurnKind::Shared, ChainHold::Exclusive, 8);
        assert!(matches!(nested, Err(Refusal::CallChain(_))));
    }

    #[test]
    fn a_writer_that_went_away_does_not_hold_up_readers() {
        let mut turns = Turns::default();
        assert!(matches!(
            take(&mut turns, TurnKind::Shared),
            TurnAnswer::Granted
        ));
        let writer = queued(take(&mut turns, TurnKind::Exclusive));
        let mut reader = queued(take(&mut turns, TurnKind::Shared));
        drop(writer);
        turns.forget_gone();
        assert!(reader.try_recv().is_ok());
    }

    #[test]
    fn waiting_is_bounded_and_those_who_left_do_not_count() {
        let mut turns = Turns::default();
        assert!(matches!(
            take(&mut turns, TurnKind::Exclusive),
            TurnAnswer::Granted
        ));
        let first = turns.take(TurnKind::Shared, ChainHold::Nothing, 1);
        assert!(matches!(first, Ok(TurnAnswer::Queued(_))));
        assert!(matches!(
            turns.take(TurnKind::Shared, ChainHold::Nothing, 1),
            Err(Refusal::TurnQueue)
        ));
        drop(first);
        assert!(turns.take(TurnKind::Shared, ChainHold::Nothing, 1).is_ok());
    }

    #[test]
    fn sealing_refuses_waiters_and_newcomers() {
        let mut turns = Turns::default();
        assert!(matches!(
            take(&mut turns, TurnKind::Exclusive),
            TurnAnswer::Granted
        ));
        let mut waiter = queued(take(&mut turns, TurnKind::Shared));
        turns.seal();
        assert!(matches!(waiter.try_recv(), Ok(Err(Refusal::Closing))));
        assert!(matches!(
            turns.take(TurnKind::Shared, ChainHold::Nothing, 8),
            Err(Refusal::Closing)
        ));
        assert!(!turns.is_free());
        turns.give_back(TurnKind::Exclusive);
        assert!(turns.is_free());
    }
}
