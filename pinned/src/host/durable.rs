//! An instance as its durable log sees it: the flusher counts as work of its own class (D17), and a log that fails ends
//! its instance (D16.1).

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::close::CloseKind;
use super::core::Service;
use super::record::{Record, Stage};
use super::seam::Running;
use crate::domain::Domain;
use crate::durability::{FrontierError, FrontierOwner};
use crate::tray::TrayError;
use crate::tray::owner::{Cut, TrayOwner};
use crate::tray::trays::Trays;

impl FrontierOwner for Record {
    fn frontier_failed(self: Arc<Self>, _error: &FrontierError) {
        self.close(CloseKind::Cancelling);
    }

    fn spawn_flusher(self: Arc<Self>, flush: BoxFuture<'static, ()>) {
        let flushing = Flushing::new(Arc::clone(&self));
        let _entered = self.host.runtime.get().map(tokio::runtime::Handle::enter);
        self.host.env.domain.spawn(async move {
            let record = &flushing.0;
            tokio::select! {
                biased;
                () = flush => {}
                () = record.wait_until(Record::cuts_flushers) => {}
            }
            drop(flushing);
        });
    }
}

impl Record {
    /// An abort takes the flusher along, so that it cannot outlive the activation in the middle of a store operation
    /// (D17.3). Whatever else ends an instance waits for its log (D17.4).
    fn cuts_flushers(&self) -> bool {
        self.stage() >= Stage::CutWork
            && self.host.service() == Service::Running
            && !self.view(&self.lock()).winding_down
    }
}

impl TrayOwner for Record {
    fn domain(&self) -> &Domain {
        &self.host.env.domain
    }

    fn is_evicting(&self) -> bool {
        self.view(&self.lock()).winding_down
    }

    fn evicting(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move { self.wait_until(|record| record.is_evicting()).await }.boxed()
    }

    fn is_cut(&self, cut: Cut) -> bool {
        let stage = self.stage();
        match cut {
            Cut::AtOnce => stage >= Stage::CutWork,
            Cut::Patient => {
                stage >= Stage::CutDraining || (stage >= Stage::CutWork && !self.is_evicting())
            }
        }
    }

    fn cut(self: Arc<Self>, cut: Cut) -> BoxFuture<'static, ()> {
        async move { self.wait_until(|record| record.is_cut(cut)).await }.boxed()
    }

    fn abort(self: Arc<Self>) {
        self.close(CloseKind::Cancelling);
    }

    fn spawn_tracked(self: Arc<Self>, work: BoxFuture<'static, ()>) {
        let running = Running::new(Arc::clone(&self));
        let _entered = self.host.runtime.get().map(tokio::runtime::Handle::enter);
        self.host.env.domain.spawn(async move {
            work.await;
            drop(running);
        });
    }
}

impl Record {
    /// Opens the trays that an activation opens. A type without any reads nothing.
    pub(super) async fn open_trays(&self) -> Result<(), TrayError> {
        match self.declared_trays() {
            Some(trays) => trays.activate().await,
            None => Ok(()),
        }
    }

    /// The instance is resident: pumps may run.
    pub(super) fn start_trays(&self) {
        if let Some(trays) = self.declared_trays() {
            trays.start();
        }
    }

    /// Closes what is open, after the work and before the teardown (T17.1). Whether it went well.
    pub(super) async fn close_trays(&self) -> bool {
        match self.declared_trays() {
            Some(trays) => trays.close().await,
            None => true,
        }
    }

    fn declared_trays(&self) -> Option<&Arc<Trays>> {
        match self.host.blueprint.trays.is_empty() {
            true => None,
            false => self.trays(),
        }
    }
}

/// A flusher at work; it counts for as long as this exists.
struct Flushing(Arc<Record>);

impl Flushing {
    fn new(record: Arc<Record>) -> Self {
        let mut state = record.lock();
        state.flushers += 1;
        state.idle_told = false;
        drop(state);
        Self(record)
    }
}

impl Drop for Flushing {
    fn drop(&mut self) {
        let record = &self.0;
        let now = record.now();
        let mut state = record.lock();
        state.flushers -= 1;
        state.last_activity = now;
        let job = record.settle_locked(&mut state, now);
        drop(state);
        record.launch(job);
    }
}
