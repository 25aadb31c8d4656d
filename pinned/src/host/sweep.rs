//! The sweep: evictions whose time has come (H8, H9).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::time::Instant;

use super::close::CloseKind;
use super::core::Host;
use super::record::{Phase, Record, State};
use super::timers::TimerKey;
use super::wind_down::WindDown;
use crate::domain::saturating_add;

/// Runs until it is stopped. An error in one sweep does not end the loop (H8.1).
pub(super) async fn run(host: Arc<Host>) {
    let domain = host.env.domain.clone();
    let mut next_purge = saturating_add(domain.monotonic(), host.fence_life());
    loop {
        tokio::select! {
            biased;
            () = host.timers.wait(&domain) => {}
            // Also without any instance: refused requests leave fences behind too.
            () = domain.sleep_until(next_purge) => {}
        }
        let now = domain.monotonic();
        let due = host.timers.due(now);
        for (key, record) in due.deadlines {
            guard(&host, || record.deadline_came(key));
        }
        for (key, record) in due.idle {
            guard(&host, || record.sweep(key, now));
        }
        if now >= next_purge {
            host.directory.purge_fences(now, host.fence_life());
            next_purge = saturating_add(now, host.fence_life());
        }
    }
}

fn guard(host: &Host, sweep: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(sweep)).is_err() {
        host.metrics.callback_failed("sweep");
        tracing::error!(target: "pinned::host", namespace = &*host.namespace, "a sweep panicked");
    }
}

impl Host {
    /// How long a fence is kept after its last update (H12.7).
    pub(super) fn fence_life(&self) -> std::time::Duration {
        let term = self
            .env
            .lease
            .ttl()
            .unwrap_or(std::time::Duration::from_secs(30));
        // Terms come from outside.
        term.saturating_mul(2)
    }
}

impl Record {
    fn deadline_came(self: &Arc<Self>, key: TimerKey) {
        let mut state = self.lock();
        if state.deadline_timer == Some(key) {
            state.deadline_timer = None;
        }
        drop(state);
        self.apply_wind_down();
    }

    /// Looks whether this instance is to be evicted, and when to look again (H8.2).
    fn sweep(self: &Arc<Self>, key: TimerKey, now: Instant) {
        let mut state = self.lock();
        if state.idle_timer != Some(key) {
            // Set anew since, for a later look.
            return;
        }
        state.idle_timer = None;
        let options = &self.host.options;
        match state.phase {
            Phase::Cold | Phase::Live => {}
            // An activation that succeeds sets the first look itself.
            Phase::Activating(_) | Phase::Closing(_) | Phase::Closed => return,
        }
        if state.is_streaming() {
            state.detached_since = now;
        } else if state.operator().is_none()
            && now - state.detached_since >= options.detached_timeout
        {
            // H9.3: nobody has been attached for so long that nothing keeps it.
            state.ask_by_operator(Some(WindDown {
                deadline: Some(now),
            }));
            drop(state);
            self.apply_wind_down();
            return;
        }
        let working = state.is_working();
        if self.view(&state).winding_down {
            let job = if working {
                self.arm_idle(&mut state, now + options.sweep_interval);
                None
            } else {
                self.close_locked(&mut state, CloseKind::Cancelling)
            };
            drop(state);
            self.launch(job);
            return;
        }
        let busy = state.is_busy() || state.is_streaming();
        let idle_at = if busy { now } else { state.last_activity } + options.idle_timeout;
        if busy || now < idle_at || state.idle_told {
            let detached_at = state.detached_since + options.detached_timeout;
            let next = if state.idle_told {
                now + options.idle_timeout
            } else {
                idle_at
            };
            let next = next
                .max(now + std::time::Duration::from_nanos(1))
                .min(detached_at);
            self.arm_idle(&mut state, next);
            return;
        }
        match state.hooks.on_idle.clone() {
            None => {
                let job = self.close_locked(&mut state, CloseKind::Plain);
                drop(state);
                self.launch(job);
            }
            Some(hook) => {
                state.idle_told = true;
                self.arm_idle(&mut state, now + options.idle_timeout);
                drop(state);
                self.tell_idle(hook);
            }
        }
    }

    /// Calls `on_idle`; if it panics, the instance is closed as it would have been without it (H8.5).
    fn tell_idle(self: &Arc<Self>, hook: crate::api::lease::IdleHook) {
        if catch_unwind(AssertUnwindSafe(|| hook())).is_ok() {
            return;
        }
        self.host.metrics.callback_failed("on_idle");
        tracing::error!(
            target: "pinned::host",
            instance_id = self.id(),
            namespace = &*self.host.namespace,
            "on_idle panicked; closing"
        );
        let mut state = self.lock();
        // Work that began meanwhile keeps it, and that which has ended again starts a new idle spell.
        let job = if state.idle_told && !state.is_busy() && !state.is_streaming() {
            self.close_locked(&mut state, CloseKind::Plain)
        } else {
            None
        };
        drop(state);
        self.launch(job);
    }

    /// The first look at a record is due when it could first be idle.
    pub(super) fn arm_first_sweep(self: &Arc<Self>, state: &mut State, now: Instant) {
        let options = &self.host.options;
        let at = if self.view(state).winding_down {
            // Activated under a wind-down: the next sweep looks at it (H10.7).
            now
        } else {
            now + options.idle_timeout.min(options.detached_timeout)
        };
        self.arm_idle(state, at);
    }

    fn arm_idle(self: &Arc<Self>, state: &mut State, at: Instant) {
        if state.phase.is_open() {
            self.host.timers.arm_idle(self, &mut state.idle_timer, at);
        }
    }

    /// Looks at this instance again when the deadline comes.
    pub(super) fn arm_deadline(self: &Arc<Self>, state: &mut State, at: Option<Instant>) {
        if state.phase.is_open() {
            self.host
                .timers
                .arm_deadline(self, &mut state.deadline_timer, at);
        }
    }
}
