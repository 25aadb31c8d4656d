//! Reading the sessions: one reading at a time, and each begins after it was asked for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pinned_domain::ErrorChain;
use quick_cache::sync::Cache;
use tokio::sync::watch;
use tokio::time::Instant;

use super::directory::{Inner, NotRefreshed};
use super::snapshot::Snapshot;
use super::{Worker, WorkerChange};
use crate::store::{SessionChanges, SessionId, SessionView};

/// How long a reading may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many ended sessions are remembered, so that rows which name them need no reading.
const REMEMBERED: usize = 16_384;

/// What the latest reading came to.
#[derive(Debug, Default)]
pub(super) struct Applied {
    version: u64,
    /// Every `(env, ns)` that was ever served.
    served: BTreeSet<(Arc<str>, Arc<str>)>,
}

/// Sessions that are known to have ended; they never live again.
pub(super) struct Ended(Cache<SessionId, ()>);

impl Ended {
    pub(super) fn new() -> Self {
        Self(Cache::new(REMEMBERED))
    }

    pub(super) fn contains(&self, session: &SessionId) -> bool {
        self.0.contains_key(session)
    }
}

/// Readings are numbered. Whoever asks for one gets the number of the first that begins from then on.
pub(super) struct Refreshes {
    state: Mutex<State>,
    done: watch::Sender<Done>,
}

#[derive(Default)]
struct State {
    /// The number of the latest that has begun, or is about to.
    begun: u64,
    running: bool,
    /// Somebody asked for another while one was running.
    wanted: bool,
}

#[derive(Default)]
struct Done {
    /// The number of the latest that has ended.
    ended: u64,
    /// The number of the latest that succeeded.
    succeeded: u64,
    /// When that one was sent.
    read_at: Option<Instant>,
}

impl Refreshes {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
            done: watch::Sender::new(Done::default()),
        }
    }

    /// When the latest reading that succeeded was sent.
    pub(super) fn read_at(&self) -> Option<Instant> {
        self.done.borrow().read_at
    }

    /// The number to wait for, and whether the caller has to start a task that reads.
    fn ask(&self) -> (u64, bool) {
        let mut state = self.state.lock();
        if state.running {
            state.wanted = true;
            return (state.begun + 1, false);
        }
        state.running = true;
        state.begun += 1;
        (state.begun, true)
    }

    /// A reading has ended; whether another is wanted.
    fn end(&self, read_at: Option<Instant>) -> bool {
        let mut state = self.state.lock();
        let number = state.begun;
        state.running = state.wanted;
        if state.wanted {
            state.wanted = false;
            state.begun += 1;
        }
        let again = state.running;
        drop(state);
        self.told(number, read_at);
        again
    }

    /// The task that reads is gone, and with it what was asked of it.
    fn abandon(&self) {
        let mut state = self.state.lock();
        let number = state.begun + u64::from(state.wanted);
        *state = State {
            begun: number,
            ..State::default()
        };
        drop(state);
        self.told(number, None);
    }

    fn told(&self, number: u64, read_at: Option<Instant>) {
        self.done.send_modify(|done| {
            done.ended = done.ended.max(number);
            if read_at.is_some() {
                done.succeeded = done.succeeded.max(number);
                done.read_at = read_at;
            }
        });
    }
}

/// Says so when the task that reads is dropped in the middle, so that nobody waits for it.
struct Reading {
    inner: Arc<Inner>,
    over: bool,
}

impl Reading {
    async fn go_on(mut self) {
        while self.inner.read_once().await {}
        self.over = true;
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if !self.over {
            self.inner.refreshes.abandon();
        }
    }
}

impl Inner {
    pub(super) async fn refresh(this: &Arc<Self>) -> Result<(), NotRefreshed> {
        let number = Self::begin_refresh(this);
        let mut done = this.refreshes.done.subscribe();
        // The sender is in `this`.
        let done = done.wait_for(|done| done.ended >= number).await;
        let succeeded = done.is_ok_and(|done| done.succeeded >= number);
        succeeded.then_some(()).ok_or(NotRefreshed)
    }

    /// Asks for a reading; the number to wait for.
    pub(super) fn begin_refresh(this: &Arc<Self>) -> u64 {
        let (number, start) = this.refreshes.ask();
        if start {
            let reading = Reading {
                inner: Arc::clone(this),
                over: false,
            };
            // A task of its own: whoever asked may go away, and others wait for it.
            this.surroundings.domain.spawn(reading.go_on());
        }
        number
    }

    /// Reads once; whether another reading is wanted.
    async fn read_once(&self) -> bool {
        let domain = &self.surroundings.domain;
        let version = self.applied.lock().version;
        let read_at = domain.monotonic();
        let changes = self.store.sessions_since(version);
        let outcome = match domain.timeout(PATIENCE, changes).await {
            Ok(Ok(changes)) => {
                self.apply(changes, read_at);
                Some(read_at)
            }
            Ok(Err(error)) => {
                tracing::debug!(error = %ErrorChain(&error), "cannot read the sessions");
                None
            }
            Err(_) => None,
        };
        self.note_answer(outcome.is_some());
        self.refreshes.end(outcome)
    }

    /// Takes over what was read. Only the task that reads calls this, and there is one.
    fn apply(&self, changes: SessionChanges, read_at: Instant) {
        let former = self.snapshot.load_full();
        let mut applied = self.applied.lock();
        let mut workers = former.workers().clone();
        let mut told = Vec::new();
        let mut rebuild = changes.complete;

        let mut ended: Vec<_> = changes.ended.into_iter().map(|id| (id, false)).collect();
        if changes.complete {
            let living: BTreeSet<_> = changes.changed.iter().map(|view| &view.id).collect();
            for worker in former.in_order() {
                if !living.contains(&worker.id) {
                    ended.push((worker.id.clone(), true));
                }
            }
        }
        for (session, unnoticed) in ended {
            if let Some(worker) = workers.remove(&session) {
                // The leases that this node knows of end no later than the true ones: one that has time left was ended.
                let lost = unnoticed || !worker.is_live();
                worker.end();
                rebuild = true;
                told.push(WorkerChange::Left { worker, lost });
            }
            self.ended.0.insert(session, ());
        }
        for view in changes.changed {
            let known = workers.get(&view.id);
            if let Some(known) = known.filter(|known| known.stands_at(&view)) {
                known.update(view, read_at);
                continue;
            }
            let Some(worker) = self.worker(view, read_at) else {
                continue;
            };
            let worker = Arc::new(worker);
            match known {
                Some(former) => worker.succeed(former),
                None => told.push(WorkerChange::Joined(Arc::clone(&worker))),
            }
            workers.insert(worker.id.clone(), worker);
            rebuild = true;
        }
        if let Some(served) = changes.namespaces {
            rebuild |= served != applied.served;
            applied.served = served;
        }
        applied.version = changes.version;
        if rebuild {
            let snapshot = Snapshot::new(workers, &applied.served);
            self.snapshot.store(Arc::new(snapshot));
        }
        drop(applied);
        for change in told {
            // Nobody may listen.
            let _ = self.changes.send(change);
        }
    }

    fn worker(&self, view: SessionView, read_at: Instant) -> Option<Worker> {
        let session = view.id.clone();
        let worker = Worker::new(view, read_at, &self.surroundings);
        if worker.is_none() {
            tracing::error!(%session, "the advertised URL of a session cannot be one");
        }
        worker
    }
}
