//! Wind-down: four sources, the earliest deadline wins (H10).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::close::{CloseJob, CloseKind};
use super::core::Host;
use super::record::{Phase, Record, State};
use crate::domain::saturating_add;

/// What one source asks for: a wind-down, with a deadline if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindDown {
    pub(crate) deadline: Option<Instant>,
}

/// What asks one instance to wind down: itself, and an operator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnSources {
    pub(super) local: Option<WindDown>,
    pub(super) operator: Option<WindDown>,
}

impl State {
    pub(super) fn local(&self) -> Option<WindDown> {
        self.sources.as_ref()?.local
    }

    pub(super) fn operator(&self) -> Option<WindDown> {
        self.sources.as_ref()?.operator
    }

    pub(super) fn ask_by_operator(&mut self, asked: Option<WindDown>) {
        if asked.is_some() || self.sources.is_some() {
            self.sources.get_or_insert_default().operator = asked;
        }
    }
}

/// What all sources say together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) winding_down: bool,
    pub(super) deadline: Option<Instant>,
}

impl View {
    fn join(self, asked: Option<WindDown>) -> Self {
        match asked {
            None => self,
            Some(asked) => Self {
                winding_down: true,
                deadline: earliest(self.deadline, asked.deadline),
            },
        }
    }

    pub(super) fn is_past(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }
}

/// The earlier of two deadlines, of which either may be missing.
fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// The drains of a whole host: its own, and the one that a control plane echoes (H10.4).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drains {
    pub(super) host: Option<WindDown>,
    pub(super) server: Option<WindDown>,
}

impl Drains {
    pub(super) fn is_draining(&self) -> bool {
        self.host.is_some() || self.server.is_some()
    }

    pub(super) fn view(&self) -> View {
        View::default().join(self.host).join(self.server)
    }
}

/// Where a drain comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrainSource {
    Host,
    Server,
}

impl Record {
    /// What all sources say together. Mostly nothing, which costs a look at three words.
    #[inline]
    pub(super) fn view(&self, state: &State) -> View {
        let draining = self.host.draining.load(Ordering::Acquire);
        if !draining && state.sources.is_none() {
            return View::default();
        }
        self.join_views(draining, state)
    }

    fn join_views(&self, draining: bool, state: &State) -> View {
        let view = if draining {
            self.host.drains.lock().view()
        } else {
            View::default()
        };
        view.join(state.local()).join(state.operator())
    }

    pub(super) fn is_past_deadline(&self, state: &State) -> bool {
        let view = self.view(state);
        view.deadline.is_some() && view.is_past(self.now())
    }

    /// The instance's own request: it never loosens (H10.2).
    pub(super) fn wind_down_locally(self: &Arc<Self>, after: Option<Duration>) {
        let now = self.now();
        let asked = after.map(|after| saturating_add(now, after));
        let mut state = self.lock();
        let known = state.local().and_then(|local| local.deadline);
        let local = WindDown {
            deadline: earliest(known, asked),
        };
        state.sources.get_or_insert_default().local = Some(local);
        drop(state);
        self.apply_wind_down();
    }

    /// The operator's request: the latest replaces (H10.3).
    pub(super) fn wind_down_by_operator(self: &Arc<Self>, asked: Option<WindDown>) {
        self.lock().ask_by_operator(asked);
        self.apply_wind_down();
    }

    /// Acts on what the sources now say together (H10.7), and tells the instance.
    pub(super) fn apply_wind_down(self: &Arc<Self>) {
        let now = self.now();
        let mut state = self.lock();
        let view = self.view(&state);
        let goes_on = !view.winding_down && matches!(state.phase, Phase::Live);
        let job = self.wind_down_locked(&mut state, view, now);
        self.arm_deadline(&mut state, view.deadline);
        drop(state);
        self.changed.notify_waiters();
        // Before the close begins: the instance hears of its wind-down while it is there.
        self.report_wind_down();
        self.launch(job);
        if goes_on {
            // What stopped for the wind-down, nobody else would start again (T16.2).
            self.start_trays();
        }
    }

    fn wind_down_locked(
        self: &Arc<Self>,
        state: &mut State,
        view: View,
        now: Instant,
    ) -> Option<CloseJob> {
        if !view.winding_down {
            return None;
        }
        let due = view.is_past(now)
            || match state.phase {
                // Left to finish (H10.7).
                Phase::Activating(_) => false,
                Phase::Cold | Phase::Live => !state.is_working(),
                // A kept close hands the placement back now (H8.9, H10.3).
                Phase::Closing(_) => true,
                Phase::Closed => false,
            };
        if due {
            self.close_locked(state, CloseKind::Cancelling)
        } else {
            None
        }
    }

    /// What a settlement of tracked work sets off, at once (H5.7).
    #[must_use]
    pub(super) fn settle_locked(&self, state: &mut State, now: Instant) -> Option<CloseJob> {
        match state.phase {
            Phase::Live | Phase::Cold => {}
            Phase::Closing(_) => {
                self.changed.notify_waiters();
                return None;
            }
            Phase::Activating(_) | Phase::Closed => return None,
        }
        if state.is_working() {
            return None;
        }
        let view = self.view(state);
        if view.winding_down {
            return self.close_locked(state, CloseKind::Cancelling);
        }
        let idle = now - state.last_activity >= self.host.options.idle_timeout
            && !state.is_busy()
            && !state.is_streaming();
        // A callback for idleness is called by the sweep, which is not in the middle of a request.
        if idle && state.hooks.on_idle.is_none() {
            return self.close_locked(state, CloseKind::Plain);
        }
        None
    }

    /// Tells `on_wind_down` of the newest state, in order: whoever reports goes on until nothing is new (H10.10).
    fn report_wind_down(&self) {
        loop {
            let mut state = self.lock();
            let view = self.view(&state);
            if state.reporting || view == state.reported || matches!(state.phase, Phase::Closed) {
                return;
            }
            state.reported = view;
            let Some(hook) = state.hooks.on_wind_down.clone() else {
                // Not replayed to a callback that comes later (H10.11).
                continue;
            };
            state.reporting = true;
            drop(state);
            let deadline = view.deadline.map(|at| self.host.env.domain.wall_time(at));
            if catch_unwind(AssertUnwindSafe(|| hook(deadline))).is_err() {
                self.host.metrics.callback_failed("on_wind_down");
                tracing::error!(
                    target: "pinned::host",
                    instance_id = self.id(),
                    namespace = &*self.host.namespace,
                    "on_wind_down panicked"
                );
            }
            self.lock().reporting = false;
        }
    }
}

impl Host {
    /// Sets or lifts one of the host's drains (H10.4, H10.5). Activations are refused from here on; instances act on it
    /// in [`Host::follow_drains`].
    pub(crate) fn set_drain(&self, source: DrainSource, drain: Option<WindDown>) {
        let mut drains = self.drains.lock();
        match source {
            DrainSource::Host => drains.host = drain,
            DrainSource::Server => drains.server = drain,
        }
        self.draining.store(drains.is_draining(), Ordering::Release);
    }

    /// Has every instance act on the drains as they are now.
    ///
    /// The flag was set before the directory is walked: a record that was admitted before is found by the walk, and
    /// one that would come after is refused.
    pub(crate) fn follow_drains(&self) {
        for record in self.directory.records() {
            record.apply_wind_down();
        }
        self.changed.notify_waiters();
    }

    /// The earliest deadline of the host's drains.
    pub(crate) fn drain_deadline(&self) -> Option<Instant> {
        self.drains.lock().view().deadline
    }

    /// An operator's request for one id; unknown ids are no error (H10.3).
    pub(crate) fn wind_down(&self, id: &str, asked: Option<WindDown>) {
        let Some(record) = self.directory.get(id) else {
            return;
        };
        tracing::info!(
            target: "pinned::host",
            instance_id = id,
            namespace = &*self.namespace,
            "{}",
            if asked.is_some() { "operator wind-down" } else { "operator resume" }
        );
        record.wind_down_by_operator(asked);
    }
}
