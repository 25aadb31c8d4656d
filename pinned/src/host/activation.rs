//! Activation: setup, shared by everyone who asks for the id (H4).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::close::{CloseJob, CloseKind};
use super::record::{Phase, Record, Stage, State};
use crate::api::chain::{Origin, refuse_wait_for_itself};
use crate::api::context::Context;
use crate::api::definition::AnyValue;
use crate::api::lifespan::SetupError;
use crate::api::refusal::{Refusal, Unavailable};
use crate::api::scope::{Held, Scope};
use crate::api::seam::{Seam, TurnKind, boxed};
use crate::domain::until;

/// An activation that callers wait for together.
pub(super) struct Activation {
    progress: Mutex<Progress>,
    /// Told of progress. It wakes in the order of the waits: callers come to their turns as they came.
    changed: Notify,
    /// A wake-up asked for it, which waits for nothing and is dropped by nobody (H14.3). Set under the record's lock.
    woken: AtomicBool,
}

#[derive(Clone, Debug)]
enum Progress {
    Queued,
    Started,
    Ended(Result<(), Unavailable>),
}

impl Activation {
    fn new() -> Self {
        Self {
            progress: Mutex::new(Progress::Queued),
            changed: Notify::new(),
            woken: AtomicBool::new(false),
        }
    }

    /// Out of the queue and into the setup; `false` when it has been withdrawn.
    fn start(&self) -> bool {
        self.leave_queue(Progress::Started)
    }

    /// Out of the queue without a setup, and everybody who waits is told so; `false` when the setup has started.
    fn withdraw(&self) -> bool {
        self.leave_queue(Progress::Ended(Err(Refusal::ActivationQueue.into())))
    }

    fn leave_queue(&self, next: Progress) -> bool {
        let mut progress = self.progress.lock();
        if !matches!(*progress, Progress::Queued) {
            return false;
        }
        *progress = next;
        drop(progress);
        self.changed.notify_waiters();
        true
    }

    /// The first end stands.
    fn end(&self, outcome: Result<(), Unavailable>) {
        let mut progress = self.progress.lock();
        if !matches!(*progress, Progress::Ended(_)) {
            *progress = Progress::Ended(outcome);
        }
        drop(progress);
        self.changed.notify_waiters();
    }

    fn is_queued(&self) -> bool {
        matches!(*self.progress.lock(), Progress::Queued)
    }

    fn progress(&self) -> Progress {
        self.progress.lock().clone()
    }

    /// Waits until it has ended, however.
    pub(super) async fn ended(&self) {
        let ended = || matches!(*self.progress.lock(), Progress::Ended(_));
        until(&self.changed, ended).await;
    }
}

/// What a setup came to.
enum Outcome {
    /// The turns have the value, and the trays are open.
    Built,
    Failed(SetupError),
    /// The record is being closed.
    CutOff,
}

impl Record {
    /// Starts or joins the activation, and waits for it.
    pub(super) async fn activated(self: Arc<Self>) -> Result<(), Unavailable> {
        let seam: Seam = Arc::clone(&self) as Seam;
        // Its own setup may be what waits for this call.
        refuse_wait_for_itself(&seam)?;
        // The setup is called by whoever starts it, for as long as that one waits here.
        let (activation, _waiting) = match self.join_activation() {
            Joined::Resident => return Ok(()),
            Joined::Refused(refusal) => return Err(Unavailable::Refused(refusal)),
            Joined::Running(activation) => (activation, None),
            Joined::Mine(activation) => {
                let (origin, waiting) = Origin::activation(&seam);
                Self::start_activation(&self, &activation, origin).await;
                (activation, Some(waiting))
            }
        };
        let started = until(&activation.changed, || !activation.is_queued());
        let deadline = self.host.options.activation_queue_deadline;
        if self
            .host
            .env
            .domain
            .timeout(deadline, started)
            .await
            .is_err()
            && let Some(refusal) = self.give_up_queueing(&activation)
        {
            return Err(Unavailable::Refused(refusal));
        }
        activation.ended().await;
        match activation.progress() {
            Progress::Ended(outcome) => outcome,
            Progress::Queued | Progress::Started => Err(Unavailable::Refused(Refusal::Aborted)),
        }
    }

    /// What a caller is told who has waited long enough for `activation` to start; `None` when it is in no queue by now.
    ///
    /// Without a control plane it stays queued, and a retry can land on it (H4.3). In a fleet the refusal sends the id
    /// elsewhere (P5.9), so that the activation must not go on here: it is withdrawn, its epoch turned away and its placement
    /// handed back. One that a wake-up asked for stays (H14.3), and so does the id.
    fn give_up_queueing(&self, activation: &Arc<Activation>) -> Option<Refusal> {
        let mut state = self.lock();
        let is_open =
            matches!(&state.phase, Phase::Activating(mine) if Arc::ptr_eq(mine, activation));
        if !is_open || !activation.is_queued() {
            return None;
        }
        if !self.host.env.is_placed() {
            return Some(Refusal::ActivationQueue);
        }
        if activation.woken.load(Ordering::Relaxed) {
            return Some(Refusal::ActivationQueued);
        }
        if !activation.withdraw() {
            return None;
        }
        let epoch = state.epoch;
        // A request that was refused may have brought a higher epoch, which nobody has turned away.
        if let Some(fence) = state
            .fence
            .as_mut()
            .filter(|fence| Some(fence.epoch) == epoch)
        {
            fence.turned_away = true;
        }
        let job = self.close_locked(&mut state, CloseKind::Cancelling);
        drop(state);
        self.launch(job);
        Some(Refusal::ActivationQueue)
    }

    /// Starts the activation unless it runs, and waits for nothing (H14.2). Whether the instance is resident already.
    pub(super) async fn wake(self: &Arc<Self>) -> Result<bool, Refusal> {
        match self.join_waking() {
            Joined::Resident => Ok(true),
            Joined::Refused(refusal) => Err(refusal),
            Joined::Running(_) => Ok(false),
            Joined::Mine(activation) => {
                // Whoever wakes an instance does not wait for it.
                let (origin, _) = Origin::activation(&(Arc::clone(self) as Seam));
                Self::start_activation(self, &activation, origin).await;
                Ok(false)
            }
        }
    }

    fn join_activation(&self) -> Joined {
        Self::join_locked(&mut self.lock())
    }

    /// Joins the activation for a wake-up: from here on it stays queued whoever gives up waiting.
    fn join_waking(&self) -> Joined {
        let mut state = self.lock();
        let joined = Self::join_locked(&mut state);
        if let Joined::Running(activation) | Joined::Mine(activation) = &joined {
            activation.woken.store(true, Ordering::Relaxed);
        }
        joined
    }

    fn join_locked(state: &mut State) -> Joined {
        match &state.phase {
            Phase::Live => Joined::Resident,
            Phase::Activating(activation) => Joined::Running(Arc::clone(activation)),
            Phase::Closing(_) | Phase::Closed => Joined::Refused(Refusal::Closing),
            Phase::Cold => {
                let activation = Arc::new(Activation::new());
                state.phase = Phase::Activating(Arc::clone(&activation));
                Joined::Mine(activation)
            }
        }
    }

    /// Runs the activation: here and now as far as it gets without waiting, then in a task of its own, so that a
    /// caller who goes away does not take it along (H4.8).
    async fn start_activation(record: &Arc<Self>, activation: &Arc<Activation>, origin: Origin) {
        let permits = Arc::clone(&record.host.activations);
        let permit = Arc::clone(&permits).try_acquire_owned().ok();
        let mut work = boxed({
            let (record, activation) = (Arc::clone(record), Arc::clone(activation));
            async move {
                let permit = match permit {
                    Some(permit) => Some(permit),
                    None => tokio::select! {
                        biased;
                        () = record.wait_until(|record| record.stage() >= Stage::CutWork) => None,
                        // The semaphore is never closed.
                        permit = permits.acquire_owned() => permit.ok(),
                    },
                };
                record.run_activation(activation, permit, origin).await;
            }
        });
        if futures_util::poll!(&mut work).is_pending() {
            record.host.env.domain.spawn(work);
        }
    }

    async fn run_activation(
        self: Arc<Self>,
        activation: Arc<Activation>,
        permit: Option<OwnedSemaphorePermit>,
        origin: Origin,
    ) {
        let outcome = match permit {
            None => Outcome::CutOff,
            Some(permit) => {
                let outcome = if activation.start() {
                    self.run_setup(origin).await
                } else {
                    Outcome::CutOff
                };
                drop(permit);
                outcome
            }
        };
        match outcome {
            Outcome::Built => self.become_live(&activation),
            Outcome::Failed(error) => self.fail_activation(&activation, error).await,
            Outcome::CutOff => {
                activation.end(Err(Refusal::Aborted.into()));
            }
        }
    }

    async fn run_setup(self: &Arc<Self>, origin: Origin) -> Outcome {
        let seam: Seam = Arc::clone(self) as Seam;
        let setup = self.host.blueprint.setup;
        let scope = Scope::new(Arc::clone(&seam), Held::Whole(TurnKind::Exclusive), origin);
        let context = Context::new(seam);
        let is_cut = |record: &Self| record.stage() >= Stage::CutWork;
        let setup = async move {
            tokio::select! {
                biased;
                built = async move { self.set_up(setup(context)).await } => Some(built),
                () = self.wait_until(is_cut) => None,
            }
        };
        // The cut is inside: what a setup leaves behind may panic when it is dropped.
        match scope.run(AssertUnwindSafe(setup).catch_unwind()).await {
            Ok(Some(Ok(()))) => Outcome::Built,
            Ok(Some(Err(error))) => Outcome::Failed(error),
            Ok(None) => Outcome::CutOff,
            Err(_panic) if is_cut(self) => Outcome::CutOff,
            Err(_panic) => Outcome::Failed(SetupError::new("the setup panicked")),
        }
    }

    /// The setup, and then the trays (T8.1).
    async fn set_up(
        &self,
        setup: BoxFuture<'static, Result<AnyValue, SetupError>>,
    ) -> Result<(), SetupError> {
        let value = setup.await?;
        // Whatever comes from here on finds the value and tears it down: a failed opening, a close.
        self.lock().turns.put(value);
        self.open_trays().await.map_err(SetupError::new)
    }

    fn become_live(self: &Arc<Self>, activation: &Activation) {
        let now = self.now();
        let wall = self.host.env.domain.now();
        let mut state = self.lock();
        if matches!(state.phase, Phase::Activating(_)) {
            state.phase = Phase::Live;
            state.last_activity = now;
            state.activated_at = Some(wall);
            self.arm_first_sweep(&mut state, now);
            drop(state);
            self.host.counts.activations.fetch_add(1, Ordering::Relaxed);
            self.host.metrics.activated();
            tracing::info!(
                target: "pinned::host",
                instance_id = self.id(),
                namespace = &*self.host.namespace,
                "activated"
            );
            activation.end(Ok(()));
            self.start_trays();
        } else {
            drop(state);
            activation.end(Err(Refusal::Aborted.into()));
        }
    }

    /// Drops the record again; the placement stays, and so does the fence (H4.6, H12.5).
    async fn fail_activation(self: &Arc<Self>, activation: &Arc<Activation>, error: SetupError) {
        if error.as_http().is_none() {
            // Its words are the user's code, and everybody waits for this activation to end.
            let words = catch_unwind(AssertUnwindSafe(|| error.to_string()));
            tracing::error!(
                target: "pinned::host",
                instance_id = self.id(),
                namespace = &*self.host.namespace,
                error = words.as_deref().unwrap_or("an error that panics when it is asked what it is"),
                "activation failed"
            );
        }
        let failure = Unavailable::SetupFailed(Arc::new(error));
        let mine = {
            let mut state = self.lock();
            self.begin_closing(&mut state, false).is_some()
        };
        if mine {
            self.raise_stage(Stage::CutWork);
            CloseJob::after_failed_activation(Arc::clone(self))
                .run()
                .await;
        }
        activation.end(Err(failure));
    }
}

enum Joined {
    Resident,
    Running(Arc<Activation>),
    /// The caller is to run it.
    Mine(Arc<Activation>),
    Refused(Refusal),
}
