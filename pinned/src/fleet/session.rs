//! What a worker knows of its registration: one state behind one lock.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use pinned_wire::attestation::same_secret;
use pinned_wire::registry::Secret;

use super::metrics;

/// The registration of a worker as it stands.
pub(super) struct Session {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The session that the registry gave; kept through failed heartbeats.
    id: Option<Arc<str>>,
    /// The one before, until it has been replaced (W3.4).
    previous: Option<Arc<str>>,
    registered: bool,
    superseded: bool,
    /// The worker is ending its last session, or has (W3.18): nothing is sent for it any more.
    over: bool,
    draining: bool,
    reregistrations: u64,
    challenge: Option<Challenge>,
    /// Messages that were applied and whose confirmation has not been acknowledged yet (W5.3).
    confirmed: BTreeSet<String>,
}

/// What the registry asks, and what it must be answered; fresh for each call (W2.2).
#[derive(Clone)]
pub(super) struct Challenge {
    pub(super) question: String,
    pub(super) answer: Secret,
}

/// What a registration is sent with.
pub(super) struct Opening {
    pub(super) previous: Option<Arc<str>>,
    pub(super) draining: bool,
}

/// What a heartbeat is sent with.
pub(super) struct Beat {
    pub(super) id: Arc<str>,
    pub(super) draining: bool,
    pub(super) confirmed: Vec<String>,
}

/// What comes next.
pub(super) enum Next {
    Register(Opening),
    Beat(Beat),
    /// Displaced for good (W4.8), or over.
    Nothing,
}

impl Session {
    pub(super) fn new() -> Self {
        metrics::registered(false);
        Self {
            state: Mutex::default(),
        }
    }

    pub(super) fn id(&self) -> Option<Arc<str>> {
        self.state.lock().id.clone()
    }

    pub(super) fn is_registered(&self) -> bool {
        self.state.lock().registered
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.state.lock().superseded
    }

    pub(super) fn reregistrations(&self) -> u64 {
        self.state.lock().reregistrations
    }

    /// What to send next, with `challenge` in force from now on: the callback may come while the call is on its way.
    pub(super) fn next(&self, challenge: Challenge) -> Next {
        let mut state = self.state.lock();
        if state.superseded || state.over {
            return Next::Nothing;
        }
        state.challenge = Some(challenge);
        match &state.id {
            None => Next::Register(Opening {
                previous: state.previous.clone(),
                draining: state.draining,
            }),
            Some(id) => Next::Beat(Beat {
                id: Arc::clone(id),
                draining: state.draining,
                confirmed: state.confirmed.iter().cloned().collect(),
            }),
        }
    }

    /// The answer to `question`, if it is the latest one (W10.2).
    pub(super) fn answer(&self, question: &str) -> Option<Secret> {
        let state = self.state.lock();
        let challenge = state.challenge.as_ref()?;
        same_secret(&challenge.question, question.as_bytes()).then(|| challenge.answer.clone())
    }

    /// Takes a new session; what was confirmed to an old one means nothing to it.
    pub(super) fn adopt(&self, id: &str) {
        let mut state = self.state.lock();
        state.id = Some(id.into());
        state.previous = None;
        state.confirmed.clear();
    }

    /// The lease runs.
    pub(super) fn set_registered(&self) {
        self.state.lock().registered = true;
        metrics::registered(true);
    }

    /// The registry does not know the session any more: the next call registers (W4.7).
    pub(super) fn lost(&self) {
        let mut state = self.state.lock();
        state.registered = false;
        state.previous = state.id.take();
        state.reregistrations += 1;
        drop(state);
        metrics::registered(false);
    }

    pub(super) fn supersede(&self) {
        let mut state = self.state.lock();
        state.registered = false;
        state.superseded = true;
        drop(state);
        metrics::registered(false);
    }

    /// The heartbeat that carried `told` was acknowledged, with messages that are to be confirmed by the next.
    pub(super) fn acknowledged(&self, told: &[String], confirmed: Vec<String>) {
        let mut state = self.state.lock();
        for id in told {
            state.confirmed.remove(id);
        }
        state.confirmed.extend(confirmed);
    }

    /// Sets the worker's own drain; whether it changed.
    pub(super) fn set_draining(&self, draining: bool) -> bool {
        let mut state = self.state.lock();
        std::mem::replace(&mut state.draining, draining) != draining
    }

    /// Nothing is begun or renewed any more.
    pub(super) fn close(&self) {
        self.state.lock().over = true;
    }

    /// The session is over, as far as this worker is concerned; `forget` when the registry has said so too (W3.17).
    pub(super) fn ended(&self, forget: bool) {
        let mut state = self.state.lock();
        state.registered = false;
        if forget {
            state.id = None;
        }
        drop(state);
        metrics::registered(false);
    }
}
