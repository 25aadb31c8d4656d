//! The close of one instance, in its one order (H11.3).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;

use super::activation::Activation;
use super::record::{CloseKind, Phase, Record, Stage};
use crate::api::lifespan::BoxError;
use crate::api::scope::{Held, Origin, Scope};
use crate::api::seam::{Seam, TurnKind};
use crate::domain::TaskError;

/// How long a close waits for its release to be acknowledged (H11.7), and before it for turns to come back.
const PATIENCE: Duration = Duration::from_secs(5);

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
        let domain = self.record.host.env.domain.clone();
        domain.spawn(self.run());
    }

    pub(super) async fn run(self) {
        let record = &self.record;
        self.stop_timers();
        if let Some(activation) = &self.activation {
            activation.ended().await;
        }
        self.count();
        // Cut off already when the close is a cancelling one; the cleanup of a plain one is what it waits for.
        record.wait_until(|record| !record.lock().is_working()).await;
        let torn_down = self.tear_down().await;
        let durable = self.flush().await;
        let clean = torn_down && durable && !self.failed_activation;
        // After a failed flush only a cancelling close fences the epoch off (H11.6).
        let fence = clean || (!self.failed_activation && (durable || self.kind == CloseKind::Cancelling));
        let mut released = false;
        loop {
            if !released && fence && self.is_releasing() {
                released = true;
                self.release(clean).await;
            }
            self.end_everything().await;
            // A close that was to keep the placement may have been told otherwise meanwhile (H13.3).
            if self.leave_directory(released || !fence) {
                break;
            }
        }
        record.changed.notify_waiters();
        record.host.changed.notify_waiters();
    }

    fn stop_timers(&self) {
        let record = &self.record;
        let mut state = record.lock();
        let timers = &record.host.timers;
        timers.arm_deadline(record, &mut state.deadline_timer, None);
        timers.arm_idle(record, &mut state.idle_timer, None);
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
            instance_id = self.record.key(),
            namespace = &*host.namespace,
            aborted,
            "{}",
            if aborted { "aborting" } else { "evicting" }
        );
    }

    /// Runs the teardown under the last turn there is. Whether it went well.
    async fn tear_down(&self) -> bool {
        let record = &self.record;
        record.seal_turns();
        // A stream or a socket may hold a turn still. One that does not give it back in time, such as for a client
        // that has stalled, is ended early: nothing may keep the instance from its end.
        let free = record.wait_until(Record::turns_are_free);
        if record.host.env.domain.timeout(PATIENCE, free).await.is_err() {
            self.end_everything().await;
            record.wait_until(Record::turns_are_free).await;
        }
        let Some(slot) = record.slot.get() else {
            return true;
        };
        let teardown = (record.host.blueprint.teardown)(Arc::clone(slot));
        let seam: Seam = Arc::clone(record) as Seam;
        let scope = Scope::new(seam, Held::Whole(TurnKind::Exclusive), Origin::default());
        let ended = scope.run(AssertUnwindSafe(teardown).catch_unwind()).await;
        let ended = ended.unwrap_or_else(|_| Err("the teardown panicked".into()));
        self.succeeded(ended, "teardown failed; the placement is not released")
    }

    async fn flush(&self) -> bool {
        match &self.record.log {
            None => true,
            Some(log) => {
                let flushed = log.wait().await;
                self.succeeded(flushed, "the durability log failed; the placement is not released")
            }
        }
    }

    fn succeeded(&self, outcome: Result<(), BoxError>, failure: &'static str) -> bool {
        match outcome {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(
                    target: "pinned::host",
                    instance_id = self.record.key(),
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
            if let Some(fence) = state.fence.as_mut().filter(|fence| Some(fence.epoch) == epoch) {
                fence.released = true;
            }
            epoch
        };
        let host = &record.host;
        let Some(placements) = host.env.placements.as_ref().filter(|_| clean) else {
            return;
        };
        let release = placements.release(&host.namespace, record.key(), epoch);
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
        let record = &self.record;
        record.raise_stage(Stage::CutAll);
        for stream in record.take_streams() {
            stream.end();
        }
        record
            .wait_until(|record| {
                let state = record.lock();
                !state.is_working() && !state.has_sockets()
            })
            .await;
    }

    /// Takes the record out, unless it is still to hand its placement back.
    fn leave_directory(&self, done: bool) -> bool {
        let record = &self.record;
        let fence = {
            let mut state = record.lock();
            let owes = matches!(&state.phase, Phase::Closing(closing) if closing.releasing);
            if owes && !done {
                return false;
            }
            state.phase = Phase::Closed;
            state.hooks = Default::default();
            state.fence
        };
        if let Some(log) = &record.log {
            log.dispose();
        }
        record.host.directory.remove(record, fence, record.now());
        true
    }
}

fn report_release(record: &Record, outcome: Result<Result<(), BoxError>, TaskError>) {
    if let Err(error) = outcome.unwrap_or_else(|crashed| Err(crashed.into())) {
        tracing::error!(
            target: "pinned::host",
            instance_id = record.key(),
            namespace = &*record.host.namespace,
            %error,
            "the release failed"
        );
    }
}

