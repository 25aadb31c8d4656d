//! The sweep: evictions whose time has come (H8, H9).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::core::Host;
use super::record::{CloseKind, Phase, Record};
use super::wind_down::Slot;

/// Runs until it is stopped. An error in one sweep does not end the loop (H8.1).
pub(super) async fn run(host: Arc<Host>) {
    let mut last_purge = host.env.domain.monotonic();
    loop {
        host.timers.wait(&host.env.domain).await;
        let now = host.env.domain.monotonic();
        let due = host.timers.due(now);
        for record in due.deadlines {
            record.lock().deadline_timer = None;
            guard(&host, || record.apply_wind_down());
        }
        for record in due.idle {
            guard(&host, || record.sweep(now));
        }
        if now.saturating_duration_since(last_purge) >= host.options.sweep_interval {
            last_purge = now;
            host.directory.purge_fences(now, host.fence_life());
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
        let term = self.env.lease.ttl().unwrap_or(std::time::Duration::from_secs(30));
        term * 2
    }
}

impl Record {
    /// Looks whether this instance is to be evicted, and when to look again (H8.2).
    fn sweep(self: &Arc<Self>, now: Instant) {
        let mut state = self.lock();
        state.idle_timer = None;
        let options = &self.host.options;
        match state.phase {
            Phase::Cold | Phase::Live => {}
            Phase::Activating(_) => {
                self.rearm_idle(&mut state, now + options.sweep_interval);
                return;
            }
            Phase::Closing(_) | Phase::Closed => return,
        }
        if state.is_streaming() {
            state.detached_since = now;
        } else if state.operator.is_none() && now - state.detached_since >= options.detached_timeout
        {
            // H9.3: nobody has been attached for so long that nothing keeps it.
            state.operator = Some(Slot {
                deadline: Some(now),
            });
            drop(state);
            self.apply_wind_down();
            return;
        }
        let working = state.is_working();
        if self.view(&state).winding_down {
            let job = if working {
                None
            } else {
                self.close_locked(&mut state, CloseKind::Cancelling)
            };
            self.rearm_idle(&mut state, now + options.sweep_interval);
            drop(state);
            self.launch(job);
            return;
        }
        let busy = working || state.is_streaming();
        let idle_at = if busy { now } else { state.last_activity } + options.idle_timeout;
        if busy || now < idle_at || state.idle_told {
            let detached_at = state.detached_since + options.detached_timeout;
            let next = if state.idle_told { now + options.idle_timeout } else { idle_at };
            let next = next.max(now + std::time::Duration::from_nanos(1)).min(detached_at);
            self.rearm_idle(&mut state, next);
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
                self.rearm_idle(&mut state, now + options.idle_timeout);
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
            instance_id = self.key(),
            namespace = &*self.host.namespace,
            "on_idle panicked; closing"
        );
        let mut state = self.lock();
        // Work that began meanwhile keeps it.
        let job = if state.is_working() || state.is_streaming() {
            None
        } else {
            self.close_locked(&mut state, CloseKind::Plain)
        };
        drop(state);
        self.launch(job);
    }

    /// The first look at a record is due when it could first be idle.
    pub(super) fn arm_first_sweep(self: &Arc<Self>, state: &mut super::record::State, now: Instant) {
        let options = &self.host.options;
        let at = if self.host.draining.load(Ordering::Acquire) || state.local.is_some() {
            // Activated under a wind-down: the next sweep looks at it (H10.7).
            now
        } else {
            now + options.idle_timeout.min(options.detached_timeout)
        };
        self.rearm_idle(state, at);
    }

    fn rearm_idle(self: &Arc<Self>, state: &mut super::record::State, at: Instant) {
        self.host.timers.arm_idle(self, &mut state.idle_timer, Some(at));
    }
}
