//! What a test does to a worker.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use pinned_domain::until;
use tokio::sync::{Notify, watch};

use super::clock::Clock;
use super::{InstanceKey, RefusalReason};

type Script = Arc<dyn Fn(&InstanceKey) -> Option<RefusalReason> + Send + Sync>;

/// What a test can do to a [`ScriptedWorker`](super::ScriptedWorker) while it runs. Clones turn the same knobs.
#[derive(Clone)]
pub struct Knobs {
    turned: Arc<Turned>,
}

struct Turned {
    settings: Mutex<Settings>,
    changed: Notify,
    /// Connections that are older than the latest generation go.
    generation: watch::Sender<u64>,
    clock: Arc<Clock>,
}

struct Settings {
    refuse: Option<Script>,
    refuse_next: VecDeque<RefusalReason>,
    hangs: bool,
    refuses_connections: bool,
    isolated: bool,
    challenge: ChallengeAnswer,
    headroom: u64,
}

/// What the worker answers when it is asked whether its URL is its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChallengeAnswer {
    /// What it has to.
    #[default]
    Right,
    /// A value that nobody gave it, as a URL would that is somebody else's.
    Wrong,
    /// This status.
    Status(u16),
    /// A redirect to somewhere else.
    Redirect,
    /// Nothing, ever.
    Silence,
}

impl Knobs {
    pub(super) fn new(clock: Arc<Clock>, headroom: u64) -> Self {
        let settings = Settings {
            refuse: None,
            refuse_next: VecDeque::new(),
            hangs: false,
            refuses_connections: false,
            isolated: false,
            challenge: ChallengeAnswer::Right,
            headroom,
        };
        Self {
            turned: Arc::new(Turned {
                settings: Mutex::new(settings),
                changed: Notify::new(),
                generation: watch::Sender::new(0),
                clock,
            }),
        }
    }

    /// Refuses requests for which `script` has a reason, without running them.
    pub fn refuse(
        &self,
        script: impl Fn(&InstanceKey) -> Option<RefusalReason> + Send + Sync + 'static,
    ) {
        self.turned.settings.lock().refuse = Some(Arc::new(script));
    }

    /// Refuses the next request; called twice, the next two.
    pub fn refuse_next(&self, reason: RefusalReason) {
        let settings = &mut self.turned.settings.lock();
        settings.refuse_next.push_back(reason);
    }

    /// Refuses nothing any more, except for reasons of its own.
    pub fn admit(&self) {
        let settings = &mut self.turned.settings.lock();
        settings.refuse = None;
        settings.refuse_next.clear();
    }

    /// Whether requests wait before anything is done with them.
    pub fn hang(&self, hangs: bool) {
        self.turned.settings.lock().hangs = hangs;
        self.turned.changed.notify_waiters();
    }

    /// Drops every connection as it is now.
    pub fn drop_connections(&self) {
        self.turned.generation.send_modify(|latest| *latest += 1);
    }

    /// Whether new connections are dropped as soon as they come.
    pub fn refuse_connections(&self, refuses: bool) {
        self.turned.settings.lock().refuses_connections = refuses;
    }

    /// Whether calls to the registry fail before they are sent.
    pub fn isolate(&self, isolated: bool) {
        self.turned.settings.lock().isolated = isolated;
    }

    /// What it answers to challenges.
    pub fn challenge(&self, answer: ChallengeAnswer) {
        self.turned.settings.lock().challenge = answer;
    }

    /// How much memory is free, in MiB, from the next heartbeat on.
    pub fn headroom(&self, mib: u64) {
        self.turned.settings.lock().headroom = mib;
    }

    /// Stops everything that the worker does, while time goes on: no heartbeat, no answer, no release (P12.2). Connections
    /// stay, and bodies that are on their way go on.
    pub fn freeze(&self) {
        self.turned.clock.freeze(true);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.turned.clock.freeze(false);
    }

    /// Stops its clock, as far as its lease, its heartbeats and its idle instances are concerned: it does not notice that
    /// time goes on, and goes on serving.
    pub fn stop_clock(&self) {
        self.turned.clock.stop();
    }

    /// Lets its clock go on, from where it was.
    pub fn start_clock(&self) {
        self.turned.clock.go_on();
    }

    // --- The worker's side ---

    pub(super) fn refusal(&self, key: &InstanceKey) -> Option<RefusalReason> {
        let script = {
            let mut settings = self.turned.settings.lock();
            if let Some(next) = settings.refuse_next.pop_front() {
                return Some(next);
            }
            settings.refuse.clone()?
        };
        script(key)
    }

    /// Goes on when requests do not wait.
    pub(super) async fn moves(&self) {
        until(&self.turned.changed, || !self.turned.settings.lock().hangs).await;
    }

    pub(super) fn refuses_connections(&self) -> bool {
        self.turned.settings.lock().refuses_connections
    }

    pub(super) fn is_isolated(&self) -> bool {
        self.turned.settings.lock().isolated
    }

    pub(super) fn challenge_answer(&self) -> ChallengeAnswer {
        self.turned.settings.lock().challenge
    }

    pub(super) fn headroom_now(&self) -> u64 {
        self.turned.settings.lock().headroom
    }

    /// Ends once the connections that there are now are dropped.
    pub(super) fn dropped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut generation = self.turned.generation.subscribe();
        let knobs = self.clone();
        async move {
            // The sender lives as long as `knobs`.
            let _ = generation.changed().await;
            drop(knobs);
        }
    }
}

impl fmt::Debug for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.turned.settings.lock();
        f.debug_struct("Knobs")
            .field("hangs", &settings.hangs)
            .field("isolated", &settings.isolated)
            .field("challenge", &settings.challenge)
            .field("headroom", &settings.headroom)
            .finish_non_exhaustive()
    }
}
