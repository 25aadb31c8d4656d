//! The pump: works through a tray, one item at a time (T10, T11, T16).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{Either, pending};
use tokio::sync::OwnedSemaphorePermit;

use super::core::{Core, Pump, State};
use super::definition::Tray;
use super::dispatch::{Dispatch, DispatchCancelled, InHand};
use super::error::TrayError;
use super::owner::Cut;
use super::reserved;
use super::retire::{How, Retirement};
use crate::domain::until;
use crate::error::{BoxError, ErrorChain, causes};
use crate::lease::EvictionRequested;

/// What the pump does next; decided within one segment.
enum Step<I> {
    Deliver(I),
    /// Nothing is left; the tray passivates or waits for the next kick.
    Drained {
        passivates: bool,
    },
    /// The item that was in hand is gone, and what it dispatched is not settled (T13.10).
    Settle,
    /// The tray is to be deleted.
    Delete,
    /// Work came between the look for some and this decision, whose kick found the pump at work: it needs a slot.
    Again,
    /// Parked, evicted, cut or being closed: the row stays as it is.
    Stop,
}

/// How a delivery ended.
enum Delivered {
    /// Handled, or given up: the item is to be acknowledged.
    Done,
    /// The handler yielded to an eviction (T16.3).
    Yielded,
    /// Cut off; the item comes again.
    Cut,
    Failed(BoxError),
}

/// Works until nothing is left, or something stops it. The tray's pump counts as running already.
pub(super) async fn run<W: Tray>(core: Arc<Core<W>>) {
    // Should it be dropped where it waits, whoever closes the tray must not wait for it.
    let mut running = Running {
        core: Arc::clone(&core),
        ended: false,
    };
    let outcome = AssertUnwindSafe(core.drain(&mut running))
        .catch_unwind()
        .await;
    let error: BoxError = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(TrayError::Frontier(_) | TrayError::Closing)) => {
            // It aborts the instance by itself (T18.4).
            return;
        }
        Ok(Err(error)) => error.into(),
        Err(panic) => format!("panicked: {}", crate::domain::panic_message(&*panic)).into(),
    };
    core.abort(&error, "a tray cannot go on; the instance is aborted");
}

struct Running<W: Tray> {
    core: Arc<Core<W>>,
    ended: bool,
}

impl<W: Tray> Running<W> {
    /// The pump is idle from here on, which a segment has said already.
    fn ended(&mut self) {
        self.ended = true;
        self.core.changed.notify_waiters();
    }
}

impl<W: Tray> Drop for Running<W> {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.core.look(|state| {
                state.pump = Pump::Idle;
                state.in_hand = None;
            });
            self.core.changed.notify_waiters();
        }
    }
}

impl<W: Tray> Core<W> {
    async fn drain(self: &Arc<Self>, running: &mut Running<W>) -> Result<(), TrayError> {
        loop {
            // Waiting for a slot is not a delivery yet (T11.1); what is delivered is decided when there is one.
            let slot = match self.has_work()? {
                true => self.slot().await,
                false => None,
            };
            let step = self.segment(|state, _| {
                let step = self.decide(state, slot.is_some())?;
                match step {
                    Step::Deliver(_) | Step::Again | Step::Settle => {}
                    Step::Drained { .. } | Step::Delete | Step::Stop => state.pump = Pump::Idle,
                }
                Ok(step)
            })?;
            match step {
                Step::Deliver(item) => {
                    if !self.deliver(item, running).await? {
                        return Ok(());
                    }
                    drop(slot);
                }
                Step::Again => {}
                Step::Settle => {
                    if !self.settle_unless_cut().await? {
                        return Ok(());
                    }
                    // Of an item that is gone: it must not answer for the next one (T13.13).
                    self.segment(|state, _| {
                        reserved::set_dispatches(&mut state.image, &[]);
                        Ok(())
                    })?;
                }
                Step::Drained { passivates } => {
                    running.ended();
                    if passivates {
                        Arc::clone(self).retire().await;
                    }
                    return Ok(());
                }
                Step::Delete => {
                    running.ended();
                    Arc::clone(self).retire().await;
                    return Ok(());
                }
                Step::Stop => {
                    running.ended();
                    return Ok(());
                }
            }
        }
    }

    /// Whether a slot is worth waiting for.
    fn has_work(self: &Arc<Self>) -> Result<bool, TrayError> {
        self.segment(|state, _| {
            if self.is_held(state) || reserved::is_condemned(&state.image) {
                return Ok(false);
            }
            Ok(state
                .value
                .next_item()
                .map_err(TrayError::Refused)?
                .is_some())
        })
    }

    fn is_held(&self, state: &State<W>) -> bool {
        state.retirement.is_some() || reserved::is_parked(&state.image) || !self.may_pump()
    }

    /// One of the worker's slots; `None` when the pump is to stop instead.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        let slots = Arc::clone(&self.slots);
        if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
            return Some(slot);
        }
        let owner = self.owner.upgrade()?;
        // Nothing would be delivered (T16.2), and a wind-down would wait as long as others keep their slots.
        let evicting = async {
            match W::SETTINGS.drain_on_eviction {
                true => pending().await,
                false => Arc::clone(&owner).evicting().await,
            }
        };
        tokio::select! {
            biased;
            // The semaphore is never closed.
            slot = slots.acquire_owned() => slot.ok(),
            () = Arc::clone(&owner).cut(Self::CUT) => None,
            () = evicting => None,
            () = until(&self.changed, || self.is_retiring_or_condemned()) => None,
        }
    }

    fn is_retiring_or_condemned(&self) -> bool {
        self.look(|state| state.retirement.is_some() || reserved::is_condemned(&state.image))
            .unwrap_or(false)
    }

    /// T10.2, in its order. With `slot` there is one to deliver under.
    fn decide(&self, state: &mut State<W>, slot: bool) -> Result<Step<W::Item>, TrayError> {
        if state.retirement.is_some() {
            return Ok(Step::Stop);
        }
        if reserved::is_condemned(&state.image) {
            state.retirement = Some(Retirement::new(How::Deleted));
            return Ok(Step::Delete);
        }
        if self.is_held(state) {
            return Ok(Step::Stop);
        }
        let Some(item) = state.value.next_item().map_err(TrayError::Refused)? else {
            // Of an item that was taken away rather than acknowledged: the next one starts with none of it (T12.2).
            reserved::set_attempts(&mut state.image, 0);
            reserved::set_state(&mut state.image, None);
            let dispatches = reserved::dispatches(&state.image);
            if dispatches.iter().any(|record| !record.cleaned) {
                return Ok(Step::Settle);
            }
            // From here on an admission marks anew, and starts the pump again (T10.5).
            state.image.set_mark(false);
            reserved::set_dispatches(&mut state.image, &[]);
            let passivates = !self.form.is_always_open();
            if passivates {
                state.retirement = Some(Retirement::new(How::Closed));
            }
            return Ok(Step::Drained { passivates });
        };
        let attempts = reserved::attempts(&state.image);
        if attempts >= W::SETTINGS.max_attempts {
            reserved::set_parked(&mut state.image, true);
            tracing::warn!(
                target: "pinned::tray",
                tray = %self.key,
                attempts,
                "parked: the item at the head was delivered as often as it may be"
            );
            return Ok(Step::Stop);
        }
        if !slot {
            return Ok(Step::Again);
        }
        Ok(Step::Deliver(item))
    }

    /// Delivers one item. Whether the pump goes on.
    async fn deliver(
        self: &Arc<Self>,
        item: W::Item,
        running: &mut Running<W>,
    ) -> Result<bool, TrayError> {
        let in_hand = Arc::new(InHand::default());
        let before = self.segment(|state, _| {
            let before = reserved::attempts(&state.image);
            reserved::set_attempts(&mut state.image, before + 1);
            state.in_hand = Some(Arc::clone(&in_hand));
            state.asked = false;
            Ok(before)
        })?;
        let dispatch = Dispatch::new(Arc::clone(self), Arc::clone(&in_hand), before + 1);
        let delivered = self.hand_over(item, dispatch, &in_hand).await;
        in_hand.settle();
        let acknowledged = match delivered {
            Delivered::Done => {
                // It may wait for the store, or for a target that closes; the item comes again then.
                if !self.settle_unless_cut().await? {
                    self.look(|state| state.in_hand = None)?;
                    return Ok(false);
                }
                true
            }
            Delivered::Yielded => false,
            Delivered::Cut => {
                self.look(|state| state.in_hand = None)?;
                return Ok(false);
            }
            Delivered::Failed(error) => {
                self.look(|state| state.in_hand = None)?;
                self.abort(
                    &error,
                    "the handler of a tray failed; the instance is aborted",
                );
                return Ok(false);
            }
        };
        // One write: the count, the state, what was taken, the item itself, and what it dispatched (T10.6).
        self.segment(|state, _| {
            state.in_hand = None;
            if acknowledged {
                reserved::set_attempts(&mut state.image, 0);
                reserved::set_state(&mut state.image, None);
                state.value.fields(&mut |_, field| field.commit_takes());
                state.value.ack_item();
                reserved::set_dispatches(&mut state.image, &[]);
            } else {
                // It was no delivery (T16.3). Whoever kicks from here on starts the pump anew (T16.6).
                reserved::set_attempts(&mut state.image, before);
                let mut returned = Ok(());
                state.value.fields(&mut |_, field| {
                    if returned.is_ok() {
                        returned = field.return_takes();
                    }
                });
                returned.map_err(TrayError::Refused)?;
                state.pump = Pump::Idle;
                // A command to delete found the pump at work (T15.2).
                state.kicked = state.asked || reserved::is_condemned(&state.image);
            }
            Ok(())
        })?;
        if !acknowledged {
            running.ended();
        }
        Ok(acknowledged)
    }

    /// Whether what the item dispatched has been settled.
    async fn settle_unless_cut(self: &Arc<Self>) -> Result<bool, TrayError> {
        let Some(owner) = self.owner.upgrade() else {
            return Ok(false);
        };
        tokio::select! {
            biased;
            settled = self.clean_up_dispatches() => settled.map(|()| true),
            () = owner.cut(Self::CUT) => Ok(false),
        }
    }

    /// Runs the handler until it ends, or is ended.
    async fn hand_over(
        self: &Arc<Self>,
        item: W::Item,
        dispatch: Dispatch<W>,
        in_hand: &Arc<InHand>,
    ) -> Delivered {
        let Some(owner) = self.owner.upgrade() else {
            return Delivered::Cut;
        };
        let handler = AssertUnwindSafe((self.handler)(item, dispatch)).catch_unwind();
        let timeout = W::SETTINGS.dispatch_timeout;
        let timeout = match Self::CUT {
            Cut::AtOnce => Either::Left(owner.domain().sleep(timeout)),
            // T16.5: an eviction's deadline lifts it.
            Cut::Patient => Either::Right(async {
                owner.domain().sleep(timeout).await;
                if owner.is_cut(Cut::AtOnce) {
                    pending().await
                }
            }),
        };
        let ended = tokio::select! {
            biased;
            ended = handler => ended,
            () = owner.clone().cut(Self::CUT) => return Delivered::Cut,
            () = in_hand.dropped() => return Delivered::Done,
            () = until(&self.changed, || self.is_being_closed()) => return Delivered::Cut,
            () = timeout => {
                let error = format!("the dispatch took longer than {} s", W::SETTINGS.dispatch_timeout.as_secs_f64());
                return Delivered::Failed(error.into());
            }
        };
        match ended {
            Ok(Ok(())) => Delivered::Done,
            Ok(Err(error)) if in_hand.is_consumed() && is::<DispatchCancelled>(&*error) => {
                Delivered::Done
            }
            Ok(Err(error)) if is::<EvictionRequested>(&*error) => Delivered::Yielded,
            Ok(Err(error)) => Delivered::Failed(error),
            Err(panic) => Delivered::Failed(
                format!("panicked: {}", crate::domain::panic_message(&*panic)).into(),
            ),
        }
    }

    fn is_being_closed(&self) -> bool {
        self.look(|state| state.retirement.is_some())
            .unwrap_or(false)
    }

    pub(super) fn abort(&self, error: &BoxError, text: &'static str) {
        tracing::error!(
            target: "pinned::tray",
            tray = %self.key,
            error = %ErrorChain(&**error),
            "{text}"
        );
        if let Some(owner) = self.owner.upgrade() {
            owner.abort();
        }
    }
}

/// Whether an error of this type stands anywhere in the chain of causes.
fn is<E: std::error::Error + 'static>(error: &(dyn std::error::Error + 'static)) -> bool {
    causes(error).any(|error| error.is::<E>())
}
