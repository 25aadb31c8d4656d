//! Segments: what changes together.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use parking_lot::ReentrantMutexGuard;

use super::error::{FrontierError, FrontierFailure};
use super::log::{Ask, LogCell, OpaqueEffect};
use super::receipt::Wait;
use super::{Frontier, Shared};
use crate::durability::claim::TrayKey;
use crate::durability::row::RowState;

const TORN: &str = "changes that belong together were cut short by a panic";

/// An open segment: the instance's lock is held, and what is staged is enlisted when the outermost one ends.
///
/// Reentrant, so that what one segment calls joins it.
pub(crate) struct Segment<'a> {
    shared: &'a Arc<Shared>,
    log: ReentrantMutexGuard<'a, LogCell>,
    inside: Inside,
    /// What had been enlisted before the outermost segment; `None` within it.
    before: Option<u64>,
}

thread_local! {
    /// The log whose lock this thread holds while code of the user's runs; 0 for none.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// This thread is within a segment. Their locks have no order among each other, so one is never held while another is
/// waited for.
pub(super) struct Inside {
    before: usize,
}

impl Inside {
    pub(super) fn enter(shared: &Arc<Shared>) -> Result<Self, FrontierError> {
        let (this, before) = (Arc::as_ptr(shared).addr(), INSIDE.get());
        if before != 0 && before != this {
            return Err(FrontierError::WithinAnother);
        }
        INSIDE.set(this);
        Ok(Self { before })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

impl Frontier {
    /// Runs `changes` within one segment.
    pub(crate) fn segment<R>(
        &self,
        changes: impl FnOnce(&Segment<'_>) -> R,
    ) -> Result<R, FrontierError> {
        let inside = Inside::enter(&self.shared)?;
        let log = self.shared.log.lock();
        log.check()?;
        let segment = Segment {
            shared: &self.shared,
            before: log.enter(),
            log,
            inside,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| changes(&segment)));
        segment.end(outcome.is_err());
        outcome.map_or_else(|panic| resume_unwind(panic), Ok)
    }
}

impl Frontier {
    /// Has the log resolve a wait for `position`.
    pub(super) fn ask(&self, position: u64) -> Wait {
        match Inside::enter(&self.shared) {
            Ok(_inside) => self.shared.log.lock().wait(position),
            Err(error) => Wait::ready(Err(error)),
        }
    }

    /// Runs `look` under the segment's lock, without being able to change anything.
    pub(crate) fn locked<R>(&self, look: impl FnOnce() -> R) -> Result<R, FrontierError> {
        let _inside = Inside::enter(&self.shared)?;
        let _log = self.shared.log.lock();
        Ok(look())
    }
}

impl Segment<'_> {
    /// As [`Segment::stage`], without giving up what the segment has staged of the row before: for rows whose order
    /// matters to a store without batches.
    pub(crate) fn stage_anew(&self, key: TrayKey, state: Option<RowState>) {
        self.log.stage_anew(key, state);
        self.publish_position();
    }

    /// The position that covers everything staged and enlisted so far.
    pub(crate) fn position(&self) -> u64 {
        self.log.last_position()
    }

    /// The row's new state, or that it is to be deleted.
    pub(crate) fn stage(&self, key: TrayKey, state: Option<RowState>) {
        self.log.stage(key, state);
        self.publish_position();
    }

    fn publish_position(&self) {
        let position = self.log.last_position();
        self.shared.position.store(position, Ordering::Release);
    }

    fn end(self, panicked: bool) {
        // Changes that belong together and were cut short in the middle: the instance goes back to what is stored. A
        // panic that came before anything was changed is no damage.
        let is_torn = panicked
            && self
                .before
                .is_some_and(|before| self.log.last_position() > before);
        let failed = match is_torn {
            true => self.log.fail(FrontierFailure::Effect(TORN.into())),
            false => None,
        };
        let ask = self.log.leave(self.shared.batches);
        drop(self.log);
        drop(self.inside);
        self.shared.failed(failed);
        match ask {
            Ask::Nothing => {}
            Ask::Start => self.shared.start_flusher(),
            Ask::Wake(flusher) => flusher.wake(),
        }
    }

    pub(crate) fn enlist_effect(&self, effect: OpaqueEffect) -> Result<(), FrontierError> {
        self.log.check()?;
        self.log.enlist_effect(effect, self.shared.batches);
        self.publish_position();
        Ok(())
    }
}

impl Shared {
    fn start_flusher(self: &Arc<Self>) {
        let flush = super::flusher::run(Arc::clone(self)).boxed();
        match self.owner() {
            Some(owner) => owner.spawn_flusher(flush),
            // Nobody is left to run it: its drop says so to those who wait.
            None => drop(flush),
        }
    }
}
