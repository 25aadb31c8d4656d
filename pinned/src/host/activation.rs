//! Activation: setup, shared by everyone who asks for the id (H4).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::close::CloseJob;
use super::record::{Phase, Record, Stage};
use crate::api::context::Context;
use crate::api::definition::AnyValue;
use crate::api::lifespan::SetupError;
use crate::api::refusal::{Refusal, Unavailable};
use crate::api::scope::{Held, Origin, Scope, refuse_wait_for_itself};
use crate::api::seam::{Seam, TurnKind, boxed};
use crate::domain::until;

/// An activation that callers wait for together.
pub(super) struct Activation {
    progress: Mutex<Progress>,
    /// Told of progress. It wakes in the order of the waits: callers come to their turns as they came.
    changed: Notify,
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
        }
    }

    fn report(&self, progress: Progress) {
        *self.progress.lock() = progress;
        self.changed.notify_waiters();
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
        let activation = match self.join_activation() {
            Joined::Resident => return Ok(()),
            Joined::Refused(refusal) => return Err(Unavailable::Refused(refusal)),
            Joined::Running(activation) => activation,
            Joined::Mine(activation) => {
                Self::start_activation(&self, &activation).await;
                activation
            }
        };
        let started = || !matches!(*activation.progress.lock(), Progress::Queued);
        let started = until(&activation.changed, started);
        let deadline = self.host.options.activation_queue_deadline;
        if self
            .host
            .env
            .domain
            .timeout(deadline, started)
            .await
            .is_err()
        {
            // It stays queued; a retry can land on it (H4.3).
            return Err(Unavailable::Refused(Refusal::ActivationQueue));
        }
        activation.ended().await;
        match activation.progress() {
            Progress::Ended(outcome) => outcome,
            Progress::Queued | Progress::Started => Err(Unavailable::Refused(Refusal::Aborted)),
        }
    }

    /// Starts the activation unless it runs, and waits for nothing (H14.2). Whether the instance is resident already.
    pub(super) async fn wake(self: &Arc<Self>) -> Result<bool, Refusal> {
        match self.join_activation() {
            Joined::Resident => Ok(true),
            Joined::Refused(refusal) => Err(refusal),
            Joined::Running(_) => Ok(false),
            Joined::Mine(activation) => {
                Self::start_activation(self, &activation).await;
                Ok(false)
            }
        }
    }

    fn join_activation(&self) -> Joined {
        let mut state = self.lock();
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
    async fn start_activation(record: &Arc<Self>, activation: &Arc<Activation>) {
        let permits = Arc::clone(&record.host.activations);
        let permit = Arc::clone(&permits).try_acquire_owned().ok();
        let origin = Origin::activation(&(Arc::clone(record) as Seam));
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
                activation.report(Progress::Started);
                let outcome = self.run_setup(origin).await;
                drop(permit);
                outcome
            }
        };
        match outcome {
            Outcome::Built => self.become_live(&activation),
            Outcome::Failed(error) => self.fail_activation(&activation, error).await,
            Outcome::CutOff => {
                activation.report(Progress::Ended(Err(Unavailable::Refused(Refusal::Aborted))));
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
            activation.report(Progress::Ended(Ok(())));
            self.start_trays();
        } else {
            drop(state);
            activation.report(Progress::Ended(Err(Unavailable::Refused(Refusal::Aborted))));
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
        activation.report(Progress::Ended(Err(failure)));
    }
}

enum Joined {
    Resident,
    Running(Arc<Activation>),
    /// The caller is to run it.
    Mine(Arc<Activation>),
    Refused(Refusal),
}
