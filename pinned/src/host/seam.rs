//! The host's side of the seam: what an instance asks of it, answered by its record.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::Request;
use tokio::time::Instant;

use super::close::CloseKind;
use super::metrics::Transport;
use super::record::{Phase, Record, Stage};
use crate::api::chain::ChainHold;
use crate::api::cluster::ClusterError;
use crate::api::lease::LeaseHooks;
use crate::api::refusal::{Refusal, Unavailable};
use crate::api::seam::{
    Begin, InstanceSeam, OpenStream, Turn, TurnAnswer, TurnKind, Work, WorkClass, boxed,
};
use crate::api::state::SharedState;
use crate::api::task::{TaskEnd, TaskHandle};
use crate::domain::Domain;
use crate::durability::{Frontier, NoStateStore};
use crate::lease::Lease;
use crate::tray::trays::Trays;
use crate::ws::Afterlife;

impl InstanceSeam for Record {
    fn id(&self) -> &str {
        Record::id(self)
    }

    fn namespace(&self) -> &str {
        &self.host.namespace
    }

    fn domain(&self) -> &Domain {
        &self.host.env.domain
    }

    fn worker_lease(&self) -> &Lease {
        &self.host.env.lease
    }

    fn shared_state(&self) -> &SharedState {
        &self.host.env.shared
    }

    fn turn_timeout(&self) -> Duration {
        self.host.options.turn_timeout
    }

    fn frontier(&self) -> Result<Frontier, NoStateStore> {
        let log = self.log.as_ref().and_then(|log| log.stored());
        Ok(log.ok_or(NoStateStore)?.frontier().clone())
    }

    fn trays(&self) -> Result<Arc<Trays>, NoStateStore> {
        Record::trays(self).map(Arc::clone).ok_or(NoStateStore)
    }

    fn placement_epoch(&self) -> Result<u64, NoStateStore> {
        self.log.as_ref().ok_or(NoStateStore)?;
        Ok(self.lock().epoch.unwrap_or(0))
    }

    fn winding_down(&self) -> bool {
        let state = self.lock();
        self.view(&state).winding_down
    }

    fn eviction_deadline(&self) -> Option<Instant> {
        let state = self.lock();
        self.view(&state).deadline
    }

    fn wind_down(self: Arc<Self>, deadline: Option<Duration>) {
        self.wind_down_locally(deadline);
    }

    fn configure_hooks(&self, hooks: LeaseHooks) {
        let mut state = self.lock();
        let merged = LeaseHooks {
            on_wind_down: hooks
                .on_wind_down
                .or_else(|| state.hooks.on_wind_down.clone()),
            on_idle: hooks.on_idle.or_else(|| state.hooks.on_idle.clone()),
        };
        let replaced = std::mem::replace(&mut state.hooks, merged);
        drop(state);
        // User code that may ask its instance something: no lock is held.
        drop(replaced);
    }

    fn closed(self: Arc<Self>) -> BoxFuture<'static, ()> {
        let closed = |record: &Self| matches!(record.lock().phase, Phase::Closed);
        async move { self.wait_until(closed).await }.boxed()
    }

    fn abort(self: Arc<Self>) {
        // Still constructing: nothing to abort yet (H11.9).
        if !matches!(self.lock().phase, Phase::Cold) {
            self.close(CloseKind::Cancelling);
        }
    }

    fn spawn(self: Arc<Self>, task: BoxFuture<'static, TaskEnd>) -> TaskHandle {
        let running = Running::new(Arc::clone(&self));
        self.host.env.domain.clone().spawn(async move {
            let record = &running.record;
            tokio::select! {
                biased;
                end = AssertUnwindSafe(task).catch_unwind() => record.report_task(end),
                () = record.wait_until(|record| record.stage() >= running.cut) => {}
            }
            drop(running);
        })
    }

    fn call(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response, ClusterError>> {
        match self.host.env.transport.get() {
            Some(transport) => {
                let transport = Arc::clone(transport);
                transport.call(self, request)
            }
            None => {
                let target = request.uri().path().to_owned();
                boxed(async move { Err(ClusterError::UnknownTarget(target)) })
            }
        }
    }

    fn look_after(self: Arc<Self>, socket: Afterlife) {
        let outgoing = Outgoing::new(Arc::clone(&self));
        let domain = self.host.env.domain.clone();
        domain.spawn(async move {
            let record = &outgoing.record;
            let cut_off = record.wait_until(|record| record.stage() == Stage::CutAll);
            socket.run(cut_off).await;
        });
    }

    fn begin(&self, class: WorkClass, turn: Option<(TurnKind, ChainHold)>) -> Begin {
        self.begin_work(class, turn)
    }

    fn depart(self: Arc<Self>) {
        self.leave();
    }

    fn setup_failed(&self, websocket: bool) {
        let transport = if websocket {
            Transport::WebSocket
        } else {
            Transport::Http
        };
        self.host.metrics.request_failed("lifespan", transport);
    }

    fn sample(&self, started: Instant) {
        self.host
            .metrics
            .took(self.now().saturating_duration_since(started));
    }

    fn activate(self: Arc<Self>) -> BoxFuture<'static, Result<(), Unavailable>> {
        boxed(self.activated())
    }

    fn take_turn(&self, turn: TurnKind, hold: ChainHold) -> Result<TurnAnswer, Refusal> {
        Record::take_turn(self, turn, hold)
    }

    fn finish(&self, work: Option<Work>, turn: Option<Turn>, torn: bool) {
        self.finish_work(work, turn, torn);
    }

    fn finish_into_stream(
        &self,
        work: Work,
        turn: Option<Turn>,
        stream: Arc<dyn OpenStream>,
    ) -> Option<u64> {
        Record::finish_into_stream(self, work, turn, stream)
    }

    fn stream_progressed(&self) {
        Record::stream_progressed(self);
    }

    fn stream_ended(self: Arc<Self>, key: u64) {
        Record::stream_ended(&self, key);
    }

    fn forget_waiters(&self) {
        Record::forget_waiters(self);
    }

    fn cut_off(&self, class: WorkClass) -> BoxFuture<'_, ()> {
        let stage = match class {
            WorkClass::Handler => Stage::CutWork,
            WorkClass::Stream => Stage::CutAll,
        };
        boxed(self.wait_until(move |record| record.stage() >= stage))
    }

    fn abort_after_panic(self: Arc<Self>, handler: &'static str) {
        tracing::error!(
            target: "pinned::host",
            instance_id = self.id(),
            namespace = &*self.host.namespace,
            handler,
            "a handler panicked; the instance is aborted"
        );
        self.close(CloseKind::Cancelling);
    }
}

/// A background task that counts; ending it in any way counts it off.
pub(super) struct Running {
    record: Arc<Record>,
    cut: Stage,
}

impl Running {
    pub(super) fn new(record: Arc<Record>) -> Self {
        let cut = record.task_started();
        Self { record, cut }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.record.task_ended(self.cut);
    }
}

/// A socket that the instance has opened, until its goodbye.
struct Outgoing {
    record: Arc<Record>,
}

impl Outgoing {
    fn new(record: Arc<Record>) -> Self {
        record.lock().outgoing += 1;
        Self { record }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.record.lock().outgoing -= 1;
        self.record.changed.notify_waiters();
    }
}

impl Record {
    fn report_task(&self, end: std::thread::Result<TaskEnd>) {
        let error = match end {
            Ok(TaskEnd::Done | TaskEnd::Yielded) => return,
            Ok(TaskEnd::Failed(error)) => error.to_string(),
            Err(panic) => format!("panicked: {}", crate::domain::panic_message(&*panic)),
        };
        tracing::error!(
            target: "pinned::host",
            instance_id = self.id(),
            namespace = &*self.host.namespace,
            class = self.host.blueprint.type_name,
            error,
            "a background task failed"
        );
    }
}
