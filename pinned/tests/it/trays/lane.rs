//! The struct that the tests of trays host.

use std::sync::Arc;

use parking_lot::Mutex;
use pinned::__private as p;
use pinned::{
    BoxError, Context, Dispatch, Instance, Persistent, PersistentQueue, PinnedApi, SingleTray, Tray,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) n: u64,
}

pub(crate) struct Work {
    pub(crate) queue: PersistentQueue<Job>,
    pub(crate) done: Persistent<u64>,
}

impl Tray for Work {
    type Item = Job;
    const SETTINGS: p::TraySettings = p::TraySettings::DEFAULT;
    fn declared() -> Self {
        Self {
            queue: PersistentQueue::declared(),
            done: Persistent::declared(Default::default),
        }
    }
    fn fields(&mut self, visit: &mut dyn FnMut(&'static str, &mut dyn p::Field)) {
        visit("queue", &mut self.queue);
        visit("done", &mut self.done);
    }
    fn next_item(&mut self) -> Result<Option<Job>, BoxError> {
        self.queue.source_next()
    }
    fn ack_item(&mut self) {
        self.queue.source_ack();
    }
}

/// What happens, and what is to happen.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    seen: Vec<(u64, u64)>,
    fails: Vec<u64>,
}

impl Script {
    pub(crate) fn seen(&self) -> Vec<(u64, u64)> {
        self.0.lock().seen.clone()
    }

    /// The next delivery of `n` fails.
    pub(crate) fn fail(&self, n: u64) {
        self.0.lock().fails.push(n);
    }
}

#[derive(Default)]
pub(crate) struct Lane;

pub(crate) const WORK: SingleTray<Lane, Work> = SingleTray::new("work");

impl PinnedApi for Lane {
    const NAMESPACE: Option<&'static str> = None;
    const PACKAGE: &'static str = "it";
    const OPTIONS: p::DeclaredOptions = p::DeclaredOptions::NONE;
    const ROUTES: &'static [p::Route] = &[];
    const TRAYS: &'static [&'static dyn p::TrayDeclaration] =
        &[&p::DeclaredTray::<Self, Work>::single("work", work, &[])];
    fn needs_store() -> bool {
        true
    }
    fn setup(_ctx: Context) -> p::BoxFuture<'static, Result<Self, p::SetupError>> {
        Box::pin(async { Ok(Self) })
    }
}

fn work(
    this: Instance<Lane>,
    job: Job,
    dispatch: Dispatch<Work>,
) -> p::BoxFuture<'static, Result<(), BoxError>> {
    Box::pin(async move {
        let script = this.context().state::<Script>().expect("a script");
        let fails = {
            let mut inner = script.0.lock();
            inner.seen.push((job.n, dispatch.attempts()));
            let place = inner.fails.iter().position(|n| *n == job.n);
            place.map(|place| inner.fails.remove(place)).is_some()
        };
        if fails {
            return Err("told to fail".into());
        }
        dispatch.update(|work| work.done.update(|done| *done += 1))?;
        Ok(())
    })
}
