//! The lease itself, and the one task that watches its clock.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::edges::Edges;
use super::settings::{LeaseSettings, ZeroBuffer};
use super::state::{Health, State};
use crate::domain::{Domain, saturating_add};

/// The lease of a worker; clones are handles to the same one.
///
/// Its health is computed from the clock each time it is asked for. A task watches the clock besides, so that the
/// moment of turning unhealthy is counted, logged and told to the hooks even when nobody asks; it ends with
/// [`close`](Self::close), or with the last handle.
#[derive(Clone)]
pub struct Lease {
    shared: Arc<Shared>,
}

struct Shared {
    domain: Domain,
    edges: Edges,
    state: Mutex<State>,
    /// The edge may have moved: the timer looks again.
    moved: Arc<Notify>,
}

impl Lease {
    /// A lease without an acknowledgement: healthy, and without an end.
    #[must_use]
    pub fn new(domain: Domain) -> Self {
        let edges = Edges::never(domain.monotonic());
        let shared = Shared {
            domain,
            edges,
            state: Mutex::new(State::new()),
            moved: Arc::new(Notify::new()),
        };
        report(Health::Healthy);
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Whether new activations may start: more than [`buffer`](Self::buffer) is left, or no acknowledgement ever came.
    #[must_use]
    pub fn healthy(&self) -> bool {
        !self
            .shared
            .edges
            .unhealthy(|| self.shared.domain.monotonic())
    }

    /// Whether the deadline has been reached, from where on nothing may be served.
    ///
    /// Cheap enough for every request: a lease that was never acknowledged does not even read the clock.
    #[must_use]
    pub fn expired(&self) -> bool {
        self.shared.edges.expired(|| self.shared.domain.monotonic())
    }

    /// When the lease expires, on the wall clock as it stands now; `None` without an acknowledgement.
    #[must_use]
    pub fn expires_at(&self) -> Option<SystemTime> {
        let deadline = self.expires_at_monotonic()?;
        Some(self.shared.domain.wall_time(deadline))
    }

    /// When the lease expires, on the monotonic clock; `None` without an acknowledgement.
    #[must_use]
    pub fn expires_at_monotonic(&self) -> Option<Instant> {
        self.shared.state.lock().deadline
    }

    /// How long before its deadline the lease turns unhealthy; 5 s unless configured.
    #[must_use]
    pub fn buffer(&self) -> Duration {
        self.shared.state.lock().buffer
    }

    /// The term of the last acknowledgement, before any [`cap`](Self::cap); `None` without one.
    #[must_use]
    pub fn ttl(&self) -> Option<Duration> {
        self.shared.state.lock().ttl
    }

    /// How often the lease has turned unhealthy.
    #[must_use]
    pub fn flaps(&self) -> u64 {
        self.shared.state.lock().flaps
    }

    /// Sets the moment that no later renewal may pass, or lifts it with `None`.
    ///
    /// The current term stays as it is: the cap counts from the next renewal on, and once lifted the next renewal
    /// is a full one again.
    pub fn cap(&self, deadline: Option<Instant>) {
        self.shared.state.lock().cap = deadline;
    }

    /// Takes an acknowledgement: the lease now runs for `ttl` from `anchor`, the moment its heartbeat was sent, or
    /// from now without one, and never past the [`cap`](Self::cap).
    ///
    /// It ends an unhealthy time, also after expiry, unless what it grants is already unhealthy itself. Hooks that
    /// are due run before this returns.
    ///
    /// # Panics
    /// On the real domain, when called outside a tokio runtime.
    pub fn renewed(&self, ttl: Duration, anchor: Option<Instant>) {
        let shared = &self.shared;
        let now = shared.domain.monotonic();
        let mut state = shared.state.lock();
        let end = saturating_add(anchor.unwrap_or(now), ttl);
        let deadline = state.cap.map_or(end, |cap| end.min(cap));
        state.ttl = Some(ttl);
        state.deadline = Some(deadline);
        shared.edges.store(deadline, state.buffer);
        if !shared.edges.unhealthy(|| now) {
            state.restore();
        }
        if state.timer.is_none() {
            state.timer = Some(
                shared
                    .domain
                    .spawn(watch(Arc::downgrade(shared), Arc::clone(&shared.moved))),
            );
        }
        shared.settle(state, now);
        shared.moved.notify_one();
    }

    /// Changes the settings that `settings` names.
    ///
    /// A new buffer moves the moment of turning unhealthy at once, also into the past; an unhealthy time that has
    /// been reported still needs a renewal to be over.
    ///
    /// # Errors
    /// [`ZeroBuffer`] when the buffer is zero; nothing has changed then.
    pub fn configure(&self, mut settings: LeaseSettings) -> Result<(), ZeroBuffer> {
        if settings.buffer.is_some_and(|buffer| buffer.is_zero()) {
            return Err(ZeroBuffer);
        }
        let shared = &self.shared;
        let now = shared.domain.monotonic();
        let mut state = shared.state.lock();
        // The hooks that go end up in `settings`, so that what they own is dropped with no lock held.
        state.swap(&mut settings);
        if let Some(deadline) = state.deadline {
            shared.edges.store(deadline, state.buffer);
        }
        shared.settle(state, now);
        shared.moved.notify_one();
        Ok(())
    }

    /// Stops watching the clock: no hook is called any more for time that passes.
    ///
    /// Health and expiry are still computed, and a later renewal starts the watch again.
    pub fn close(&self) {
        if let Some(timer) = self.shared.state.lock().timer.take() {
            timer.abort();
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("healthy", &self.healthy())
            .field("expired", &self.expired())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Passes the edge that `now` has reached, and tells of the change with the lock released.
    fn settle<'a>(&'a self, mut state: MutexGuard<'a, State>, now: Instant) {
        if self.edges.unhealthy(|| now) {
            state.turn_unhealthy();
        }
        report(state.health());
        if !state.begin_telling() {
            return;
        }
        // Others may pass further edges meanwhile; they leave the telling to this loop.
        while let Some(news) = state.next_news() {
            drop(state);
            match news.health {
                Health::Healthy => tracing::info!(target: "pinned::lease", "lease restored"),
                Health::Unhealthy => {
                    tracing::warn!(target: "pinned::lease", flaps = news.flaps, "lease unhealthy")
                }
            }
            if let Some(hook) = news.hook {
                hook.run();
            }
            state = self.state.lock();
        }
    }

    /// The timer's look at the clock; gives the edge to wait for, where there is one.
    fn look(&self) -> Option<Instant> {
        let now = self.domain.monotonic();
        let state = self.state.lock();
        // An aborted timer may still be on its way here.
        state.timer.as_ref()?;
        self.settle(state, now);
        self.edges.unhealthy_at().filter(|edge| *edge > now)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(timer) = self.state.get_mut().timer.take() {
            timer.abort();
        }
    }
}

/// The timer: sleeps until the lease turns unhealthy, and looks again whenever that moment has moved.
///
/// It holds no handle while it sleeps, so it does not keep a forgotten lease alive.
async fn watch(lease: Weak<Shared>, moved: Arc<Notify>) {
    loop {
        let Some(shared) = lease.upgrade() else {
            return;
        };
        let sleep = shared.look().map(|edge| shared.domain.sleep_until(edge));
        drop(shared);
        match sleep {
            Some(sleep) => tokio::select! {
                biased;
                () = sleep => {}
                () = moved.notified() => {}
            },
            None => moved.notified().await,
        }
    }
}

/// Sets the gauge; called under the lock, so that its last value is that of the state.
fn report(health: Health) {
    metrics::gauge!("pinned_lease_healthy").set(if health == Health::Healthy { 1.0 } else { 0.0 });
}
