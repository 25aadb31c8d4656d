//! One instance: a state machine behind one lock.
//!
//! Every 'check, then act' of the hosting rules is one method here that takes the lock once. What a transition sets
//! in motion (a close, callbacks, timers) is returned as an effect and carried out after the lock is free; no lock is
//! ever held across an await, and the record's lock is never held while the directory's is taken.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::activation::Activation;
use super::core::Host;
use super::fence::Fence;
use super::timers::TimerKey;
use super::turns::Turns;
use super::wind_down::{OwnSources, View};
use crate::api::chain::Origin;
use crate::api::lease::LeaseHooks;
use crate::api::refusal::Refusal;
use crate::api::seam::{OpenStream, Seam};
use crate::domain::until;
use crate::durability::{EffectLog, LogOwner};
use crate::tray::trays::Trays;

/// One instance of one id.
///
/// The order of its fields is that of their use: what every call writes stands in the first cache lines, next to the
/// counts of its `Arc`, so that two threads that take turns with an instance pass few lines to and fro.
#[repr(C)]
pub(crate) struct Record {
    state: Mutex<State>,
    pub(super) host: Arc<Host>,
    id: Box<str>,
    /// How much of the running work is cut off; only ever raised.
    stage: AtomicU8,
    pub(super) log: Option<Arc<dyn EffectLog>>,
    /// The trays, from the activation on.
    trays: OnceLock<Arc<Trays>>,
    /// Told of a raised stage, of settled work while closing, and of the end of the close.
    pub(super) changed: Notify,
    this: Weak<Self>,
}

/// How much of an instance's running work is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Stage {
    Running,
    /// Handlers and tasks (H11.3, the cancelling close).
    CutWork,
    /// Also pumps that drain through an eviction (T16.5): a close was asked for again.
    CutDraining,
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

#[repr(C)]
pub(super) struct State {
    // What every call touches.
    pub(super) phase: Phase,
    pub(super) turns: Turns,
    pub(super) handlers: u32,
    /// Requests before the instance: authorizing, extracting, waiting for the activation.
    pub(super) attached: u32,
    pub(super) tasks: u32,
    pub(super) sockets: u32,
    /// Sockets that the instance has opened itself; they keep it from nothing but the end of its close.
    pub(super) outgoing: u32,
    pub(super) last_activity: Instant,
    /// `on_idle` has been told of this idle spell (H8.5).
    pub(super) idle_told: bool,
    /// What asks this very instance to wind down; mostly nothing.
    pub(super) sources: Option<Box<OwnSources>>,

    // What only some calls, sweeps and closes touch.
    pub(super) streams: BTreeMap<u64, Arc<dyn OpenStream>>,
    pub(super) next_stream: u64,
    /// Since when there has been no stream work (H9.2).
    pub(super) detached_since: Instant,
    /// What is known of the id's epochs; a request that is refused may have moved it ahead of `epoch`.
    pub(super) fence: Option<Fence>,
    /// The epoch that this instance serves at, and hands back (H3.11, H11.7).
    pub(super) epoch: Option<u64>,
    /// Flushers of the durable log (D17): at most one at work, and one that is just ending.
    pub(super) flushers: u32,
    /// Tasks that were spawned when the close had been decided (H7.3).
    pub(super) late_tasks: u32,
    /// Somebody is telling `on_wind_down` right now.
    pub(super) reporting: bool,
    /// What `on_wind_down` was last told.
    pub(super) reported: View,
    pub(super) hooks: LeaseHooks,
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
        let record = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            host,
            id: id.into(),
            log,
            trays: OnceLock::new(),
            state: Mutex::new(State {
                phase: Phase::Cold,
                attached: 1,
                handlers: 0,
                tasks: 0,
                late_tasks: 0,
                flushers: 0,
                sockets: 0,
                outgoing: 0,
                streams: BTreeMap::new(),
                next_stream: 0,
                turns: Turns::default(),
                last_activity: now,
                detached_since: now,
                fence,
                epoch,
                sources: None,
                reported: View::default(),
                reporting: false,
                hooks: LeaseHooks::default(),
                idle_told: false,
                activated_at: None,
                idle_timer: None,
                deadline_timer: None,
            }),
            stage: AtomicU8::new(Stage::Running as u8),
            changed: Notify::new(),
        });
        if let Some(log) = &record.log {
            let owner: Weak<Self> = Weak::clone(&record.this);
            log.attach(LogOwner(owner));
        }
        record
    }

    /// The trays of this instance, bound to it where they are first asked for; `None` without a store.
    pub(super) fn trays(&self) -> Option<&Arc<Trays>> {
        if let Some(trays) = self.trays.get() {
            return Some(trays);
        }
        let stored = self.log.as_ref()?.stored()?;
        let seam: Seam = self.this()?;
        let owner: Weak<Self> = Weak::clone(&self.this);
        Some(self.trays.get_or_init(|| {
            Trays::new(
                stored.frontier().clone(),
                owner,
                Arc::clone(stored.slots()),
                crate::api::tray::bind(self.host.blueprint.trays, &seam),
            )
        }))
    }

    /// The record itself, for what outlives the caller's hold on it.
    pub(super) fn this(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    pub(super) fn id(&self) -> &str {
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

    /// Whether the placement is handed back whatever comes: the instance closes and releases, or its deadline has passed
    /// and the close is about to begin.
    pub(super) fn is_leaving(&self) -> bool {
        let state = self.lock();
        match &state.phase {
            Phase::Closing(closing) => closing.releasing || self.is_past_deadline(&state),
            Phase::Closed => true,
            _ => self.is_past_deadline(&state),
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

    /// The streams that are open, for the last step of the close. They count no more: a client that has stalled may
    /// let go of its end at any later time.
    pub(super) fn take_streams(&self) -> impl Iterator<Item = Arc<dyn OpenStream>> + use<> {
        std::mem::take(&mut self.lock().streams).into_values()
    }

    pub(super) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Running,
            1 => Stage::CutWork,
            2 => Stage::CutDraining,
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
        until(&self.changed, || done(self)).await;
    }

    /// Waits for the end of a close, unless it turns out to hand the placement back (H3.9), or its own teardown is what
    /// waits.
    pub(super) async fn wait_for_successor(
        self: Arc<Self>,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        origin.refuse_wait_for_itself(&(Arc::clone(&self) as Seam))?;
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

    /// Whether anything keeps an instance from being idle: work, and durable effects on their way (D17.1). A wind-down
    /// does not wait for those, because the teardown does (D17.2).
    pub(super) fn is_busy(&self) -> bool {
        self.is_working() || self.flushers > 0
    }

    /// Whether a stream or a WebSocket is open.
    pub(super) fn is_streaming(&self) -> bool {
        self.sockets > 0 || !self.streams.is_empty()
    }

    /// Whether anything at all runs; streams aside, which end without anybody's help.
    pub(super) fn has_work(&self) -> bool {
        self.is_working() || self.late_tasks > 0 || self.sockets > 0 || self.outgoing > 0
    }

    fn connections(&self) -> u32 {
        let streams = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        self.sockets.saturating_add(streams)
    }
}
