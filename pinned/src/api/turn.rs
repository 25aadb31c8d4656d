//! Turns: the guards through which handlers reach an instance's value.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use axum::response::Response;
use futures_util::future::{Either, ready};
use http_body::Body as _;
use pinned_wire::headers::REFUSAL;
use tokio::sync::oneshot;

use super::chain::{chain_hold, describe_chain};
use super::definition::PinnedApi;
use super::headers::strike;
use super::refusal::Refusal;
use super::scope::{HoldMark, is_own_work};
use super::seam::{Seam, Turn, TurnAnswer, TurnKind, Work, boxed};
use super::stream::track;

/// Work that counts, a turn that is held, or both. Dropping it ends them in one step.
pub(crate) struct Tracked {
    seam: Seam,
    work: Option<Work>,
    turn: Option<Turn>,
    _mark: Option<HoldMark>,
}

impl Tracked {
    /// Wraps what `seam` has already counted.
    pub(crate) fn adopt(seam: Seam, work: Option<Work>, turn: Option<Turn>) -> Self {
        Self {
            seam,
            work,
            turn,
            _mark: None,
        }
    }

    pub(crate) fn seam(&self) -> &Seam {
        &self.seam
    }

    /// Ends the work with its answer. A streaming body goes on as stream work, with no moment in between at which
    /// the instance looks idle (H6.4).
    pub(crate) fn answer(mut self, mut response: Response) -> Response {
        // Only a host may promise that nothing has run; a handler's own answer, or one that it relays, says otherwise.
        strike(response.headers_mut(), &REFUSAL);
        // Code of the user's that may panic: until it is done, this guard ends the work.
        let is_measured = response.body().size_hint().exact().is_some();
        let (work, turn) = (self.work.take(), self.turn.take());
        match work {
            Some(work) if !is_measured => track(&self.seam, work, turn, response),
            work => {
                self.seam.finish(work, turn, false);
                response
            }
        }
    }

    /// Checks that the turn is one of a `T`, and notes it in its chain.
    fn enter<T: PinnedApi>(&mut self) -> Result<(), Refusal> {
        match &self.turn {
            Some(turn) if turn.value.is::<T>() => {
                self._mark = HoldMark::note(&self.seam, turn.kind);
                Ok(())
            }
            _ => Err(Refusal::Closing),
        }
    }

    fn value<T: PinnedApi>(&self) -> Option<&T> {
        self.turn.as_ref()?.value.downcast_ref()
    }

    fn value_mut<T: PinnedApi>(&mut self) -> Option<&mut T> {
        Arc::get_mut(&mut self.turn.as_mut()?.value)?.downcast_mut()
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let (work, turn) = (self.work.take(), self.turn.take());
        if work.is_none() && turn.is_none() {
            return;
        }
        // A value that was being changed when a panic passed may be half changed: nobody sees it again.
        let torn = turn.is_some() && std::thread::panicking();
        self.seam.finish(work, turn, torn);
    }
}

/// Work that waits for its turn. Dropping it leaves the queue, or gives back a turn granted in the meantime.
struct QueuedWork {
    seam: Seam,
    work: Option<Work>,
    answer: oneshot::Receiver<Result<Turn, Refusal>>,
    settled: bool,
}

impl QueuedWork {
    async fn settle(mut self) -> Result<Tracked, Refusal> {
        let seam = Arc::clone(&self.seam);
        let timeout = seam.turn_timeout();
        let granted = match seam.domain().timeout(timeout, &mut self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_queue_is_gone)) => Err(Refusal::Closing),
            Err(_elapsed) => return Err(Refusal::TurnTimeout),
        };
        self.settled = true;
        match granted {
            Ok(turn) => Ok(Tracked::adopt(seam, self.work, Some(turn))),
            Err(refusal) => {
                drop(Tracked::adopt(seam, self.work, None));
                Err(refusal)
            }
        }
    }
}

impl Drop for QueuedWork {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        self.answer.close();
        let turn = self.answer.try_recv().ok().and_then(Result::ok);
        if turn.is_none() {
            self.seam.forget_waiters();
        }
        self.seam.finish(self.work, turn, false);
    }
}

/// Waits for the turn that `answer` promises.
///
/// `work` counts already; it ends with the returned guard, or before this returns an error. The future guards it from
/// the start: a server may drop one that it never polled.
pub(crate) fn settle_turn(
    seam: Seam,
    work: Option<Work>,
    answer: TurnAnswer,
) -> impl Future<Output = Result<Tracked, Refusal>> + Send {
    match answer {
        TurnAnswer::Granted(turn) => {
            Either::Left(ready(Ok(Tracked::adopt(seam, work, Some(turn)))))
        }
        TurnAnswer::Queued(answer) => {
            let queued = QueuedWork {
                seam,
                work,
                answer,
                settled: false,
            };
            Either::Right(queued.settle())
        }
    }
}

/// A turn for work that counts already.
///
/// When the instance closes there is none left to give. Work of the instance's own that asks for one then waits to be
/// cut off, as all of it is by the end of the close: an error would end its socket or stream before the placement is
/// handed back (H11.8), and would be logged as the fault of a task (H7.2).
pub(crate) async fn take_turn(seam: &Seam, turn: TurnKind) -> Result<Tracked, Refusal> {
    let answer = match seam.take_turn(turn, chain_hold(seam)) {
        Ok(TurnAnswer::Granted(turn)) => {
            return Ok(Tracked::adopt(Arc::clone(seam), None, Some(turn)));
        }
        other => other,
    };
    // Only a wait costs a future of its own.
    boxed(wait_for_turn(seam, turn, answer)).await
}

async fn wait_for_turn(
    seam: &Seam,
    turn: TurnKind,
    answer: Result<TurnAnswer, Refusal>,
) -> Result<Tracked, Refusal> {
    let taken = match answer {
        Ok(answer) => settle_turn(Arc::clone(seam), None, answer).await,
        Err(refusal) => Err(name_chain(refusal, seam, turn)),
    };
    if matches!(taken, Err(Refusal::Closing)) && is_own_work(seam) {
        std::future::pending::<()>().await;
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
    tracked: Tracked,
    of: PhantomData<fn() -> T>,
}

/// An exclusive turn: `&mut T`, alone.
///
/// A turn is first come, first served. It is given back when the guard is dropped; when a panic drops it, the
/// instance is aborted and the next request starts from a fresh setup.
pub struct WriteTurn<T> {
    tracked: Tracked,
    of: PhantomData<fn() -> T>,
}

/// What the guards were made with, and what nothing takes away from them while they live.
const HELD: &str = "a turn holds the value it was granted with";

impl<T: PinnedApi> ReadTurn<T> {
    pub(crate) fn new(mut tracked: Tracked) -> Result<Self, Refusal> {
        tracked.enter::<T>()?;
        Ok(Self {
            tracked,
            of: PhantomData,
        })
    }

    pub(crate) fn into_tracked(self) -> Tracked {
        self.tracked
    }
}

impl<T: PinnedApi> WriteTurn<T> {
    pub(crate) fn new(mut tracked: Tracked) -> Result<Self, Refusal> {
        tracked.enter::<T>()?;
        Ok(Self {
            tracked,
            of: PhantomData,
        })
    }

    pub(crate) fn into_tracked(self) -> Tracked {
        self.tracked
    }
}

impl<T: PinnedApi> Deref for ReadTurn<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.tracked.value().expect(HELD)
    }
}

impl<T: PinnedApi> Deref for WriteTurn<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.tracked.value().expect(HELD)
    }
}

impl<T: PinnedApi> DerefMut for WriteTurn<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.tracked.value_mut().expect(HELD)
    }
}

impl<T: PinnedApi + fmt::Debug> fmt::Debug for ReadTurn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadTurn").field(&**self).finish()
    }
}

impl<T: PinnedApi + fmt::Debug> fmt::Debug for WriteTurn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteTurn").field(&**self).finish()
    }
}
