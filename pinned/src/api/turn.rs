//! Turns: the guards through which handlers reach an instance's value.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use axum::response::Response;
use pinned_wire::headers::REFUSAL;
use tokio::sync::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, oneshot,
};

use super::definition::{PinnedApi, Slot};
use super::refusal::Refusal;
use super::scope::{HoldMark, chain_hold, describe_chain, is_own_work};
use super::seam::{Seam, TurnAnswer, TurnKind, WorkClass};
use super::stream::track;

/// Work that counts, a turn that is held, or both. Dropping it ends them in one step.
pub(crate) struct Tracked {
    seam: Seam,
    work: Option<WorkClass>,
    turn: Option<TurnKind>,
    _mark: Option<HoldMark>,
    ended: bool,
}

impl Tracked {
    /// Wraps what `seam` has already counted.
    pub(crate) fn adopt(seam: Seam, work: Option<WorkClass>, turn: Option<TurnKind>) -> Self {
        Self {
            seam,
            work,
            turn,
            _mark: None,
            ended: false,
        }
    }

    pub(crate) fn seam(&self) -> &Seam {
        &self.seam
    }

    /// Ends the work with its answer. A streaming body goes on as stream work, with no moment in between at which
    /// the instance looks idle (H6.4).
    pub(crate) fn answer(mut self, mut response: Response) -> Response {
        self.ended = true;
        // Only a host may promise that nothing has run; a handler's own answer, or one that it relays, says otherwise.
        response.headers_mut().remove(REFUSAL);
        track(&self.seam, self.turn, response)
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if self.ended || (self.work.is_none() && self.turn.is_none()) {
            return;
        }
        // A value that was being changed when a panic passed may be half changed: nobody sees it again.
        let torn = self.turn.is_some() && std::thread::panicking();
        Arc::clone(&self.seam).finish(self.work, self.turn, torn);
    }
}

/// Work that waits for its turn. Dropping it leaves the queue, or gives back a turn granted in the meantime.
struct Waiting {
    seam: Seam,
    work: Option<WorkClass>,
    turn: TurnKind,
    answer: oneshot::Receiver<Result<(), Refusal>>,
    settled: bool,
}

impl Waiting {
    async fn settle(mut self) -> Result<Tracked, Refusal> {
        let seam = Arc::clone(&self.seam);
        let timeout = seam.turn_timeout();
        let granted = match seam.domain().timeout(timeout, &mut self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_queue_is_gone)) => Err(Refusal::Closing),
            Err(_elapsed) => return Err(Refusal::TurnTimeout),
        };
        self.settled = true;
        let turn = granted.is_ok().then_some(self.turn);
        let tracked = Tracked::adopt(seam, self.work, turn);
        granted.map(|()| tracked)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        self.answer.close();
        let turn = matches!(self.answer.try_recv(), Ok(Ok(()))).then_some(self.turn);
        if turn.is_none() {
            self.seam.forget_waiters();
        }
        Arc::clone(&self.seam).finish(self.work, turn, false);
    }
}

/// Waits for the turn that `answer` promises.
///
/// `work` counts already; it ends with the returned guard, or before this returns an error.
pub(crate) async fn settle_turn(
    seam: Seam,
    work: Option<WorkClass>,
    turn: TurnKind,
    answer: TurnAnswer,
) -> Result<Tracked, Refusal> {
    match answer {
        TurnAnswer::Granted => Ok(Tracked::adopt(seam, work, Some(turn))),
        TurnAnswer::Queued(answer) => {
            let waiting = Waiting {
                seam,
                work,
                turn,
                answer,
                settled: false,
            };
            waiting.settle().await
        }
    }
}

/// A turn for work that counts already.
///
/// When the instance closes there is none left to give. A handler or body that asks for one then waits to be cut off, so
/// that the error does not end its socket or stream before the placement is handed back (H11.8).
pub(crate) async fn take_turn(seam: &Seam, turn: TurnKind) -> Result<Tracked, Refusal> {
    let taken = match seam.take_turn(turn, chain_hold(seam)) {
        Ok(answer) => settle_turn(Arc::clone(seam), None, turn, answer).await,
        Err(refusal) => Err(name_chain(refusal, seam, turn)),
    };
    if matches!(taken, Err(Refusal::Closing)) && is_own_work(seam) {
        seam.cut_off(WorkClass::Stream).await;
    }
    taken
}

/// Fills in the chain that a refusal speaks of; the state machine that refused knows none.
pub(crate) fn name_chain(refusal: Refusal, seam: &Seam, turn: TurnKind) -> Refusal {
    match refusal {
        Refusal::CallChain(_) => Refusal::CallChain(describe_chain(seam, turn)),
        other => other,
    }
}

/// A shared turn: `&T`, beside other shared turns.
///
/// A turn is first come, first served. It is given back when the guard is dropped.
pub struct ReadTurn<T> {
    value: OwnedRwLockReadGuard<Option<T>, T>,
    tracked: Tracked,
}

/// An exclusive turn: `&mut T`, alone.
///
/// A turn is first come, first served. It is given back when the guard is dropped; when a panic drops it, the
/// instance is aborted and the next request starts from a fresh setup.
pub struct WriteTurn<T> {
    value: OwnedRwLockMappedWriteGuard<Option<T>, T>,
    tracked: Tracked,
}

fn slot_of<T: PinnedApi>(seam: &Seam) -> Result<Slot<T>, Refusal> {
    let slot = seam.slot().ok_or(Refusal::Closing)?;
    Arc::clone(slot)
        .downcast::<RwLock<Option<T>>>()
        .map_err(|_| Refusal::Closing)
}

impl<T: PinnedApi> ReadTurn<T> {
    pub(crate) fn new(mut tracked: Tracked) -> Result<Self, Refusal> {
        tracked._mark = HoldMark::note(&tracked.seam, TurnKind::Shared);
        let guard = slot_of::<T>(&tracked.seam)?
            .try_read_owned()
            .map_err(|_| Refusal::Closing)?;
        let value = OwnedRwLockReadGuard::try_map(guard, Option::as_ref)
            .map_err(|_torn_down| Refusal::Closing)?;
        Ok(Self { value, tracked })
    }

    pub(crate) fn into_tracked(self) -> Tracked {
        self.tracked
    }
}

impl<T: PinnedApi> WriteTurn<T> {
    pub(crate) fn new(mut tracked: Tracked) -> Result<Self, Refusal> {
        tracked._mark = HoldMark::note(&tracked.seam, TurnKind::Exclusive);
        let guard = slot_of::<T>(&tracked.seam)?
            .try_write_owned()
            .map_err(|_| Refusal::Closing)?;
        let value = OwnedRwLockWriteGuard::try_map(guard, Option::as_mut)
            .map_err(|_torn_down| Refusal::Closing)?;
        Ok(Self { value, tracked })
    }

    pub(crate) fn into_tracked(self) -> Tracked {
        self.tracked
    }
}

impl<T> Deref for ReadTurn<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Deref for WriteTurn<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for WriteTurn<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for ReadTurn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadTurn").field(&**self).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for WriteTurn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteTurn").field(&**self).finish()
    }
}
