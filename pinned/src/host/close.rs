//! The close of one instance, in its one order (H11.3).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;

use super::activation::Activation;
use super::core::Service;
use super::fence::Fence;
use super::record::{Closing, Phase, Record, Stage, State};
use crate::api::chain::Origin;
use crate::api::lease::LeaseHooks;
use crate::api::scope::{Held, Scope};
use crate::api::seam::{Seam, TurnKind};
use crate::domain::TaskError;
use crate::error::BoxError;

/// How long a close waits for its release to be acknowledged (H11.7), and before it for turns to come back.
const PATIENCE: Duration = Duration::from_secs(5);

/// The two kinds of close (H11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseKind {
    /// Idle: nothing runs; keeps the placement if the host is told to.
    Plain,
    /// Everything else: cuts off what runs and hands the placement back.
    Cancelling,
}

impl Record {
    pub(super) fn close(self: &Arc<Self>, kind: CloseKind) {
        let mut state = self.lock();
        let again = kind == CloseKind::Cancelling
            && matches!(state.phase, Phase::Closing(_))
            && self.stage() >= Stage::CutWork;
        let job = self.close_locked(&mut state, kind);
        if again {
            self.raise_stage(Stage::CutDraining);
        }
        drop(state);
        self.launch(job);
    }

    /// Decides a close; visible to every admission from here on (H3.10).
    #[must_use]
    pub(super) fn close_locked(&self, state: &mut State, kind: CloseKind) -> Option<CloseJob> {
        let cancelling = kind == CloseKind::Cancelling;
        let job = if let Phase::Closing(closing) = &mut state.phase {
            // H11.1: nothing changes, but a cancelling close makes a kept one hand the placement back.
            closing.releasing |= cancelling;
            self.changed.notify_waiters();
            None
        } else {
            let releasing = cancelling || self.host.options.release_placement_on_idle;
            let before = self.begin_closing(state, releasing)?;
            self.this()
                .map(|record| CloseJob::new(record, before, kind))
        };
        if cancelling {
            // First: a handler that is cut off in the middle of a change gives its turn to nobody.
            state.turns.seal();
            self.raise_stage(Stage::CutWork);
        }
        job
    }

    /// From open to closing: the phase before, or `None` when it was not open. Its timers stop in the same step, and
    /// none is set again after it.
    pub(super) fn begin_closing(&self, state: &mut State, releasing: bool) -> Option<Phase> {
        if !state.phase.is_open() {
            return None;
        }
        let timers = &self.host.timers;
        timers.disarm(&mut state.idle_timer, &mut state.deadline_timer);
        Some(std::mem::replace(
            &mut state.phase,
            Phase::Closing(Closing { releasing }),
        ))
    }

    /// Starts what a transition decided.
    pub(super) fn launch(&self, job: Option<CloseJob>) {
        if let Some(job) = job {
            job.launch();
        }
    }

    /// Out of the directory, unless a placement is still to be handed back: its fence, and what is dropped after.
    pub(super) fn become_closed(&self, handed_back: bool) -> Option<(Option<Fence>, LeaseHooks)> {
        let mut state = self.lock();
        if matches!(&state.phase, Phase::Closing(closing) if closing.releasing && !handed_back) {
            return None;
        }
        state.phase = Phase::Closed;
        Some((state.fence, std::mem::take(&mut state.hooks)))
    }
}

/// A close that was decided and is to be carried out.
#[must_use = "a close that is not launched leaves its record closing for ever"]
pub(super) struct CloseJob {
    record: Arc<Record>,
    activation: Option<Arc<Activation>>,
    was_live: bool,
    kind: CloseKind,
    /// A failed activation is no eviction: it counts nothing and hands nothing back (H4.6).
    failed_activation: bool,
}

impl CloseJob {
    pub(super) fn new(record: Arc<Record>, before: Phase, kind: CloseKind) -> Self {
        let was_live = matches!(before, Phase::Live);
        let activation = match before {
            Phase::Activating(activation) => Some(activation),
            _ => None,
        };
        Self {
            record,
            activation,
            was_live,
            kind,
            failed_activation: false,
        }
    }

    pub(super) fn after_failed_activation(record: Arc<Record>) -> Self {
        Self {
            record,
            activation: None,
            was_live: false,
            kind: CloseKind::Cancelling,
            failed_activation: true,
        }
    }

    pub(super) fn launch(self) {
        let host = Arc::clone(&self.record.host);
        // Whoever dropped the last thing that kept the instance need not be on a thread of the runtime.
        let _entered = host.runtime.get().map(tokio::runtime::Handle::enter);
        let unfinished = Unfinished(Some(Arc::clone(&self.record)));
        host.env.domain.spawn(async move {
            self.run().await;
            unfinished.finished();
        });
    }

    pub(super) async fn run(self) {
        let record = &self.record;
        if let Some(activation) = &self.activation {
            activation.ended().await;
        }
        self.count();
        // Cut off by now; what is waited for is its cleanup. A plain close finds nothing here.
        record
            .wait_until(|record| !record.lock().is_working())
            .await;
        let trays_closed = self.close_trays().await;
        let torn_down = self.tear_down().await;
        let durable = self.flush().await;
        let clean = trays_closed && torn_down && durable && !self.failed_activation;
        let fence = !self.failed_activation && (durable || self.fences_undurable());
        let mut log = record.log.as_ref();
        let mut released = false;
        loop {
            if !released && fence && self.is_releasing() {
                released = true;
                self.release(clean).await;
            }
            self.end_everything().await;
            if let Some(log) = log.take() {
                log.dispose();
            }
            // A close that was to keep the placement may have been told otherwise meanwhile (H13.3).
            if record.host.directory.remove(record, released || !fence) {
                break;
            }
        }
        record.changed.notify_waiters();
        record.host.changed.notify_waiters();
    }

    fn count(&self) {
        if self.failed_activation {
            return;
        }
        let host = &self.record.host;
        let aborted = self.kind == CloseKind::Cancelling;
        host.counts.evictions.fetch_add(1, Ordering::Relaxed);
        host.metrics.evicted(aborted, self.was_live);
        tracing::info!(
            target: "pinned::host",
            instance_id = self.record.id(),
            namespace = &*host.namespace,
            aborted,
            "{}",
            if aborted { "aborting" } else { "evicting" }
        );
    }

    /// Closes the trays. A stream may be in the middle of opening one, and whoever reads that stream may have stopped: as
    /// with turns, it keeps nothing for longer than this.
    async fn close_trays(&self) -> bool {
        let record = &self.record;
        let mut closing = pin!(record.close_trays());
        let domain = &record.host.env.domain;
        match domain.timeout(PATIENCE, &mut closing).await {
            Ok(clean) => clean,
            Err(_elapsed) => {
                self.cut_streams();
                closing.await
            }
        }
    }

    /// Runs the teardown under the last turn there is. Whether it went well.
    async fn tear_down(&self) -> bool {
        let record = &self.record;
        record.seal_turns();
        // Streams and sockets run on, and may hold a turn: the value is not torn down under them. One that keeps its
        // turn would hold the close up for as long as its client likes, so it ends before the release (H11.8).
        let free = record.wait_until(Record::turns_are_free);
        if record
            .host
            .env
            .domain
            .timeout(PATIENCE, free)
            .await
            .is_err()
        {
            self.cut_streams();
            record.wait_until(Record::turns_are_free).await;
        }
        let Some(value) = record.lock().turns.retire() else {
            return true;
        };
        let teardown = record.host.blueprint.teardown;
        // The error is put into words under the same guard: they too are the user's code.
        let teardown = async move { teardown(value).await.map_err(|error| error.to_string()) };
        let seam: Seam = Arc::clone(record) as Seam;
        let scope = Scope::new(seam, Held::Whole(TurnKind::Exclusive), Origin::default());
        let ended = scope.run(AssertUnwindSafe(teardown).catch_unwind()).await;
        let ended = ended.unwrap_or_else(|_| Err("the teardown panicked".to_owned()));
        self.succeeded(
            ended.map_err(BoxError::from),
            "teardown failed; the placement is not released",
        )
    }

    async fn flush(&self) -> bool {
        let record = &self.record;
        let Some(log) = record.log.clone() else {
            return true;
        };
        let flushed = AssertUnwindSafe(async move { log.wait().await })
            .catch_unwind()
            .await;
        let flushed = flushed.unwrap_or_else(|_| Err("the log panicked".into()));
        if let Err(error) = &flushed
            && record.host.service() == Service::Stopped
        {
            // The one failure of a close that whoever shuts down has to hear of (H11.6).
            let failure = format!("{}/{}: {error}", record.host.namespace, record.id());
            record.host.failures.lock().push(failure);
        }
        self.succeeded(
            flushed,
            "the durability log failed; the placement is not released",
        )
    }

    /// After a failed flush, only a close that was forced fences the epoch off (H11.6).
    fn fences_undurable(&self) -> bool {
        let record = &self.record;
        self.kind == CloseKind::Cancelling && !record.view(&record.lock()).winding_down
    }

    fn succeeded(&self, outcome: Result<(), BoxError>, failure: &'static str) -> bool {
        match outcome {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(
                    target: "pinned::host",
                    instance_id = self.record.id(),
                    namespace = &*self.record.host.namespace,
                    %error,
                    "{failure}"
                );
                false
            }
        }
    }

    fn is_releasing(&self) -> bool {
        matches!(&self.record.lock().phase, Phase::Closing(closing) if closing.releasing)
    }

    /// Marks the fence, and hands the placement back if everything before went well (H11.5, H12.4).
    async fn release(&self, clean: bool) {
        let record = &self.record;
        let epoch = {
            let mut state = record.lock();
            let epoch = state.epoch;
            // A request that this close refused may have brought a higher epoch, which is not this instance's to end.
            if let Some(fence) = state
                .fence
                .as_mut()
                .filter(|fence| Some(fence.epoch) == epoch)
            {
                fence.released = true;
            }
            epoch
        };
        let host = &record.host;
        let Some(placements) = host.env.placements.as_ref().filter(|_| clean) else {
            return;
        };
        let release = placements.release(&host.namespace, record.id(), epoch);
        let mut release = host.env.domain.spawn(release);
        match host.env.domain.timeout(PATIENCE, &mut release).await {
            Ok(outcome) => report_release(record, outcome),
            Err(_elapsed) => {
                host.counts.late_releases.fetch_add(1, Ordering::AcqRel);
                let record = Arc::clone(record);
                let domain = host.env.domain.clone();
                domain.spawn(async move {
                    report_release(&record, release.await);
                    let host = &record.host;
                    host.counts.late_releases.fetch_sub(1, Ordering::AcqRel);
                    host.changed.notify_waiters();
                });
            }
        }
    }

    /// Ends every stream, socket and late task, until none is left.
    async fn end_everything(&self) {
        self.cut_streams();
        self.record
            .wait_until(|record| !record.lock().has_work())
            .await;
    }

    fn cut_streams(&self) {
        self.record.raise_stage(Stage::CutAll);
        for stream in self.record.take_streams() {
            stream.end();
        }
    }
}

/// A close that was launched. Where its runtime ends under it, or it panics, nobody else will end the instance: its record
/// leaves the directory all the same, which keeps it alive otherwise.
struct Unfinished(Option<Arc<Record>>);

impl Unfinished {
    fn finished(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(record) = self.0.take() {
            let value = record.lock().turns.retire();
            // Not torn down, but let go of: it may hold its own context, and by that the record. It is the user's to drop.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
            for stream in record.take_streams() {
                stream.end();
            }
            record.host.directory.remove(&record, true);
            record.changed.notify_waiters();
            record.host.changed.notify_waiters();
        }
    }
}

fn report_release(record: &Record, outcome: Result<Result<(), BoxError>, TaskError>) {
    if let Err(error) = outcome.unwrap_or_else(|crashed| Err(crashed.into())) {
        tracing::error!(
            target: "pinned::host",
            instance_id = record.id(),
            namespace = &*record.host.namespace,
            %error,
            "the release failed"
        );
    }
}
