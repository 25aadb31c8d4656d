//! A live tray: its value, its row, and its segments.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, Semaphore};

use super::definition::Tray;
use super::dispatch::{Dispatch, InHand};
use super::entries::{EntryText, Image};
use super::error::TrayError;
use super::field::Changes;
use super::owner::{Cut, TrayOwner};
use super::retire::Retirement;
use super::settings::Form;
use super::trays::Trays;
use crate::durability::{Doc, Frontier, FrontierError, Receipt, RowState, Segment, TrayKey};
use crate::error::BoxError;

/// Runs the handler of a tray for one item.
pub(crate) type Handler<W> = Arc<
    dyn Fn(<W as Tray>::Item, Dispatch<W>) -> BoxFuture<'static, Result<(), BoxError>>
        + Send
        + Sync,
>;

/// A live tray.
pub(crate) struct Core<W: Tray> {
    pub(super) key: TrayKey,
    pub(super) form: Form,
    pub(super) frontier: Frontier,
    pub(super) owner: Weak<dyn TrayOwner>,
    pub(super) trays: Weak<Trays>,
    pub(super) slots: Arc<Semaphore>,
    pub(super) handler: Handler<W>,
    pub(super) hooks: Vec<super::kind::Hook<W>>,
    /// Its row existed at the current version (T9.4).
    pub(super) restored: bool,
    /// Told of retirement, and of its end.
    pub(super) changed: Notify,
    state: Mutex<State<W>>,
}

/// What stands behind the instance's lock. The tray's own mutex is never waited for: whoever holds the lock finds it
/// free, except a segment within a segment of the same tray.
pub(super) struct State<W> {
    pub(super) value: W,
    pub(super) image: Image,
    pub(super) pump: Pump,
    /// The segment asks for the pump.
    pub(super) kicked: bool,
    /// The pump was to start while it was at work: it goes on should the item in hand turn out to be undelivered.
    pub(super) asked: bool,
    /// The position of what was written to its row last; 0 for nothing.
    pub(super) staged: u64,
    /// It replaced a row of another version, which may have left chunks (T9.5).
    pub(super) replaced: bool,
    pub(super) retirement: Option<Retirement>,
    /// Writes are refused from here on (T14.4).
    pub(super) sealed: bool,
    pub(super) in_hand: Option<Arc<InHand>>,
}

/// Whether the one pump there may be is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pump {
    /// The tray is being set up, and not in its directory yet: what its hooks admit waits, and so does a close.
    Opening,
    /// It is in its directory; the instance is not resident yet.
    Standby,
    Idle,
    Running,
}

impl<W: Tray> State<W> {
    pub(super) fn new(value: W, image: Image) -> Self {
        Self {
            value,
            image,
            pump: Pump::Opening,
            kicked: false,
            asked: false,
            staged: 0,
            replaced: false,
            retirement: None,
            sealed: false,
            in_hand: None,
        }
    }

    /// Whether a retirement may be carried out now.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.pump, Pump::Standby | Pump::Idle)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.retirement.is_some_and(|retirement| retirement.ended)
    }

    /// Marks the row, and has the pump start once the segment stands (T13.3).
    pub(super) fn kick(&mut self) {
        self.image.set_mark(true);
        self.kicked = true;
    }
}

impl<W: Tray> Core<W> {
    #[allow(
        clippy::too_many_arguments,
        reason = "one caller, which names them all"
    )]
    pub(super) fn new(
        key: TrayKey,
        form: Form,
        frontier: Frontier,
        owner: Weak<dyn TrayOwner>,
        trays: Weak<Trays>,
        slots: Arc<Semaphore>,
        handler: Handler<W>,
        hooks: Vec<super::kind::Hook<W>>,
        restored: bool,
        state: State<W>,
    ) -> Arc<Self> {
        Arc::new(Self {
            key,
            form,
            frontier,
            owner,
            trays,
            slots,
            handler,
            hooks,
            restored,
            changed: Notify::new(),
            state: Mutex::new(state),
        })
    }

    /// Looks at the state without changing anything that is stored.
    pub(super) fn look<R>(&self, look: impl FnOnce(&mut State<W>) -> R) -> Result<R, TrayError> {
        self.frontier.locked(|| Ok(look(&mut *self.enter()?)))?
    }

    fn enter(&self) -> Result<MutexGuard<'_, State<W>>, TrayError> {
        self.state
            .try_lock()
            .ok_or_else(|| TrayError::InSegment(self.key.clone()))
    }

    /// Runs `changes` as one segment, or as part of the one that is open: all of it reaches the row as one write, or, if
    /// it fails or panics, none.
    pub(super) fn segment<R>(
        self: &Arc<Self>,
        changes: impl FnOnce(&mut State<W>, &Segment<'_>) -> Result<R, TrayError>,
    ) -> Result<R, TrayError> {
        self.positioned(changes).map(|(outcome, _)| outcome)
    }

    /// The same, with the receipt of what it enlisted. What the pump makes of it right afterwards is not waited for.
    pub(super) fn receipted(
        self: &Arc<Self>,
        changes: impl FnOnce(&mut State<W>, &Segment<'_>) -> Result<(), TrayError>,
    ) -> Result<Receipt, TrayError> {
        let ((), position) = self.positioned(changes)?;
        Ok(self.frontier.receipt_for(position))
    }

    fn positioned<R>(
        self: &Arc<Self>,
        changes: impl FnOnce(&mut State<W>, &Segment<'_>) -> Result<R, TrayError>,
    ) -> Result<(R, u64), TrayError> {
        let segment = self.frontier.segment(|segment| {
            let mut state = self.enter()?;
            let state = &mut *state;
            let changed = catch_unwind(AssertUnwindSafe(|| {
                let outcome = changes(state, segment)?;
                // Values are written as JSON here, by code of the user's.
                self.stage(state, segment)?;
                Ok::<_, TrayError>((outcome, segment.position()))
            }));
            match changed {
                Ok(Ok(outcome)) => Ok((outcome, self.takes_pump(state))),
                Ok(Err(error)) => {
                    self.roll_back(state);
                    Err(error)
                }
                Err(panic) => {
                    self.roll_back(state);
                    resume_unwind(panic);
                }
            }
        });
        let (outcome, start) = segment.map_err(ended)??;
        if start {
            self.spawn_pump();
        }
        Ok(outcome)
    }

    /// Brings what the segment changed into the row, and the row on its way.
    fn stage(&self, state: &mut State<W>, segment: &Segment<'_>) -> Result<(), TrayError> {
        let mut found: Vec<(&'static str, Changes)> = Vec::new();
        let mut failed = None;
        state.value.fields(&mut |name, field| {
            if failed.is_none() {
                match field.changes() {
                    Ok(changes) if changes.entry.is_none() && changes.chunks.is_empty() => {}
                    Ok(changes) => found.push((name, changes)),
                    Err(source) => failed = Some((name, source)),
                }
            }
        });
        if let Some((name, source)) = failed {
            return Err(TrayError::Encode {
                tray: self.key.clone(),
                entry: name.to_owned(),
                source,
            });
        }
        let mut written = Vec::new();
        let mut dropped = Vec::new();
        for (name, changes) in found {
            if let Some(entry) = changes.entry {
                state.image.set(name, entry);
            }
            for (number, text) in changes.chunks {
                let key = chunk_key(&self.key, name, number);
                match text {
                    Some(text) => written.push((key, text)),
                    None => dropped.push(key),
                }
            }
        }
        let changed = state.image.is_changed();
        if changed && state.sealed {
            return Err(self.retired(state));
        }
        state.image.commit();
        if changed {
            self.stage_rows(state, segment, written, dropped);
        }
        // Those who watch a field hear of what is on its way already (O7.2).
        state.value.fields(&mut |_, field| field.commit());
        Ok(())
    }

    fn stage_rows(
        &self,
        state: &mut State<W>,
        segment: &Segment<'_>,
        written: Vec<(TrayKey, EntryText)>,
        dropped: Vec<TrayKey>,
    ) {
        // What the row refers to is there before it, and goes after it.
        let anew = !written.is_empty();
        for (key, text) in written {
            let doc = Doc::trusted(format!("{{\"items\":{text}}}"));
            segment.stage_anew(key, Some(RowState { marked: false, doc }));
        }
        if anew {
            segment.stage_anew(self.key.clone(), Some(state.image.to_state()));
        } else {
            segment.stage(self.key.clone(), Some(state.image.to_state()));
        }
        for key in dropped {
            segment.stage_anew(key, None);
        }
        state.staged = segment.position();
    }

    /// Takes the changes of the segment back. Values are made of what is stored here, by code of the user's: one that
    /// refuses what it wrote itself leaves the tray without a state that may be written, and ends the instance.
    fn roll_back(&self, state: &mut State<W>) {
        let mut failed: Option<BoxError> = None;
        let undone = catch_unwind(AssertUnwindSafe(|| {
            state.value.fields(&mut |name, field| {
                if let Err(error) = field.rollback() {
                    failed.get_or_insert_with(|| format!("entry {name:?}: {error}").into());
                }
            });
        }));
        state.image.rollback();
        state.kicked = false;
        if let Err(panic) = undone {
            failed = Some(crate::domain::panic_message(&*panic).into());
        }
        if let Some(error) = failed {
            let text = format!(
                "a change of tray {} could not be taken back: {error}",
                self.key
            );
            self.frontier.fail(text.into());
        }
    }

    /// Whether the pump is to be started for what the segment asked; it counts as running from here on.
    fn takes_pump(&self, state: &mut State<W>) -> bool {
        let kicked = std::mem::take(&mut state.kicked);
        let start = kicked
            && state.pump == Pump::Idle
            && state.retirement.is_none()
            && !state.sealed
            && self.may_pump();
        if start {
            state.pump = Pump::Running;
        }
        start
    }

    /// T16.2, T16.4: an evicting instance starts no pumps, except those that drain.
    pub(super) fn may_pump(&self) -> bool {
        self.owner.upgrade().is_some_and(|owner| {
            !owner.is_cut(Self::CUT) && (W::SETTINGS.drain_on_eviction || !owner.is_evicting())
        })
    }

    pub(super) const CUT: Cut = if W::SETTINGS.drain_on_eviction {
        Cut::Patient
    } else {
        Cut::AtOnce
    };

    /// The refusal of a tray that is retiring, or has retired.
    pub(super) fn retired(&self, state: &State<W>) -> TrayError {
        match &state.retirement {
            Some(retirement) => retirement.refusal(&self.key),
            None => TrayError::Closed(self.key.clone()),
        }
    }

    /// Refuses admissions to a tray that is retiring (T13.1).
    pub(super) fn check_open(&self, state: &State<W>) -> Result<(), TrayError> {
        match state.retirement {
            Some(_) => Err(self.retired(state)),
            None => Ok(()),
        }
    }

    pub(super) fn spawn_pump(self: &Arc<Self>) {
        let core = Arc::clone(self);
        match self.owner.upgrade() {
            Some(owner) => owner.spawn_tracked(Box::pin(super::pump::run(core))),
            None => drop(core),
        }
    }
}

/// A segment that the log did not even begin: where the instance has just ended, nothing was changed, and that is known.
fn ended(error: FrontierError) -> TrayError {
    match error {
        FrontierError::Closed => TrayError::Closing,
        error => error.into(),
    }
}

/// The row of one chunk of a queue: its tray's names are no declared ones, so no activation reads it on its own.
pub(super) fn chunk_key(tray: &TrayKey, field: &str, number: u64) -> TrayKey {
    TrayKey::new(
        chunk_namespace(tray, field),
        format!("{}/{number:016x}", tray.tray_id),
    )
}

/// Whether `row` is a chunk of the tray `tray_id`, and not of one whose id begins the same.
pub(super) fn is_chunk_of(tray_id: &str, row: &str) -> bool {
    row.rsplit_once('/')
        .is_some_and(|(tray, _number)| tray == tray_id)
}

pub(super) fn chunk_namespace(tray: &TrayKey, field: &str) -> String {
    format!("{}~{field}", tray.tray_ns)
}
