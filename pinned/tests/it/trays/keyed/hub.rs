//! The struct that these tests host: a relay whose handler is the test's, and a sink that notes what it has done.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinned::{
    BoxError, Dispatch, Instance, Persistent, PersistentQueue, Tray, TraySource, pinned_api,
};
use serde::{Deserialize, Serialize};

use crate::app::Gate;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) n: u64,
}

#[derive(Tray)]
#[tray(max_attempts = 5, dispatch_timeout = "1h")]
pub(crate) struct Relay {
    #[tray(items)]
    pub(crate) queue: PersistentQueue<Job>,
    pub(crate) feed: PersistentQueue<u64>,
    pub(crate) other: PersistentQueue<u64>,
    pub(crate) done: Persistent<u64>,
}

/// Its log is written with the acknowledgement: it holds each item as often as it was admitted.
#[derive(Tray)]
#[tray(source)]
pub(crate) struct Sink {
    pub(crate) queue: PersistentQueue<Job>,
    pub(crate) side: PersistentQueue<Job>,
    /// Entries that are no objects.
    pub(crate) numbers: PersistentQueue<u64>,
    pub(crate) total: Persistent<u64>,
    pub(crate) log: Persistent<Vec<u64>>,
}

impl TraySource for Sink {
    type Item = Job;

    fn next(&mut self) -> Result<Option<Job>, BoxError> {
        Ok(self.queue.peek().cloned())
    }

    fn ack(&mut self) {
        if let Some(job) = self.queue.pop_front() {
            self.log.update(|log| log.push(job.n));
        }
    }
}

/// Entries of any form.
#[derive(Tray)]
pub(crate) struct Loose {
    pub(crate) queue: PersistentQueue<serde_json::Value>,
}

type Handler = Arc<
    dyn Fn(Instance<Hub>, Job, Dispatch<Relay>) -> BoxFuture<'static, Result<(), BoxError>>
        + Send
        + Sync,
>;

/// What the handlers are to do, and what they were given.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    relays: Option<Handler>,
    /// Holds every item of the sinks up.
    gate: Option<Gate>,
    attempts: VecDeque<(u64, u64)>,
}

impl Script {
    /// What the relay does with its items, from now on.
    pub(crate) fn relays<F, Fut>(&self, handler: F)
    where
        F: Fn(Instance<Hub>, Job, Dispatch<Relay>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.0.lock().relays = Some(Arc::new(move |this, job, dispatch| {
            handler(this, job, dispatch).boxed()
        }));
    }

    /// Holds the handlers of the sinks up.
    pub(crate) fn hold_sinks(&self) -> Gate {
        let gate = Gate::closed();
        self.0.lock().gate = Some(gate.clone());
        gate
    }

    /// Each delivery of the relay so far: the item, and which attempt it was.
    pub(crate) fn deliveries(&self) -> Vec<(u64, u64)> {
        self.0.lock().attempts.iter().copied().collect()
    }
}

#[derive(Default)]
pub(crate) struct Hub;

fn script(this: &Instance<Hub>) -> Arc<Script> {
    this.context().state::<Script>().expect("a script")
}

async fn wait_for_gate(this: &Instance<Hub>) {
    let gate = script(this).0.lock().gate.clone();
    if let Some(gate) = gate {
        gate.pass().await;
    }
}

#[pinned_api]
impl Hub {
    #[tray]
    pub(crate) async fn relay(
        this: Instance<Self>,
        job: Job,
        dispatch: Dispatch<Relay>,
    ) -> Result<(), BoxError> {
        let script = script(&this);
        let handler = {
            let mut inner = script.0.lock();
            inner.attempts.push_back((job.n, dispatch.attempts()));
            inner.relays.clone()
        };
        match handler {
            Some(handler) => handler(this, job, dispatch).await,
            None => Ok(()),
        }
    }

    #[tray]
    pub(crate) async fn sink(this: Instance<Self>, _job: Job, _dispatch: Dispatch<Sink>) {
        wait_for_gate(&this).await;
    }

    #[tray]
    pub(crate) async fn loose(
        _this: Instance<Self>,
        _entry: serde_json::Value,
        _dispatch: Dispatch<Loose>,
    ) {
    }

    /// Sinks that close when they are done.
    #[tray(map)]
    pub(crate) async fn sinks(this: Instance<Self>, _job: Job, _dispatch: Dispatch<Sink>) {
        wait_for_gate(&this).await;
    }

    /// Relays that close when they are done.
    #[tray(map)]
    pub(crate) async fn relays(
        this: Instance<Self>,
        job: Job,
        dispatch: Dispatch<Relay>,
    ) -> Result<(), BoxError> {
        Self::relay(this, job, dispatch).await
    }
}
