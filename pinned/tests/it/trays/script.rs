//! What handlers and hooks are to do, and what they did.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinned::{BoxError, Context, Dispatch, Instance, TrayHandle};
use pinned_testing::Gate;

use super::lane::{Job, Lane, Work};

pub(crate) struct Delivery {
    pub(crate) this: Instance<Lane>,
    pub(crate) job: Job,
    pub(crate) dispatch: Dispatch<Work>,
}

type Ended = BoxFuture<'static, Result<(), BoxError>>;
type Act = Box<dyn FnOnce(Delivery) -> Ended + Send>;
type SetupAct = Box<dyn FnOnce(Context) -> Ended + Send>;
type HookAct = Box<dyn FnOnce(Instance<Lane>, TrayHandle<Work>) -> Ended + Send>;

#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    seen: Vec<(u64, u64)>,
    ended: Vec<u64>,
    hooks: Vec<String>,
    gates: HashMap<u64, Gate>,
    acts: HashMap<u64, VecDeque<Act>>,
    setup: Option<SetupAct>,
    teardown_fails: bool,
    hook_acts: HashMap<&'static str, VecDeque<HookAct>>,
}

impl Script {
    /// The deliveries so far: job and attempt.
    pub(crate) fn seen(&self) -> Vec<(u64, u64)> {
        self.0.lock().seen.clone()
    }

    /// The jobs whose handlers came to their end.
    pub(crate) fn ended(&self) -> Vec<u64> {
        self.0.lock().ended.clone()
    }

    /// The hooks that ran: `first open a`.
    pub(crate) fn hooks(&self) -> Vec<String> {
        self.0.lock().hooks.clone()
    }

    /// Deliveries of `n` wait at the gate.
    pub(crate) fn hold(&self, n: u64) -> Gate {
        let gate = Gate::new();
        self.0.lock().gates.insert(n, gate.clone());
        gate
    }

    /// The next delivery of `n` does this, after its gate.
    pub(crate) fn on<F>(&self, n: u64, act: impl FnOnce(Delivery) -> F + Send + 'static)
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let act: Act = Box::new(move |delivery| Box::pin(act(delivery)));
        let mut inner = self.0.lock();
        inner.acts.entry(n).or_default().push_back(act);
    }

    /// The next delivery of `n` fails.
    pub(crate) fn fail(&self, n: u64) {
        self.on(n, |_| async { Err("told to fail".into()) });
    }

    /// The next delivery of `n` never ends.
    pub(crate) fn hang(&self, n: u64) {
        self.on(n, |_| std::future::pending());
    }

    /// The next setup of an instance does this.
    pub(crate) fn on_setup<F>(&self, act: impl FnOnce(Context) -> F + Send + 'static)
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.0.lock().setup = Some(Box::new(move |ctx| Box::pin(act(ctx))));
    }

    pub(crate) fn fail_teardown(&self) {
        self.0.lock().teardown_fails = true;
    }

    pub(super) async fn set_up(&self, ctx: Context) -> Result<(), BoxError> {
        let act = self.0.lock().setup.take();
        match act {
            Some(act) => act(ctx).await,
            None => Ok(()),
        }
    }

    pub(super) fn tear_down(&self) -> Result<(), BoxError> {
        let mut inner = self.0.lock();
        inner.hooks.push("teardown".to_owned());
        match inner.teardown_fails {
            true => Err("told to fail".into()),
            false => Ok(()),
        }
    }

    /// The next run of this hook does this.
    pub(crate) fn on_hook<F>(
        &self,
        hook: &'static str,
        act: impl FnOnce(Instance<Lane>, TrayHandle<Work>) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let act: HookAct = Box::new(move |this, tray| Box::pin(act(this, tray)));
        let mut inner = self.0.lock();
        inner.hook_acts.entry(hook).or_default().push_back(act);
    }

    pub(super) async fn deliver(&self, delivery: Delivery) -> Result<(), BoxError> {
        let n = delivery.job.n;
        self.begin(n, delivery.dispatch.attempts()).await;
        let act = {
            let mut inner = self.0.lock();
            inner.acts.get_mut(&n).and_then(VecDeque::pop_front)
        };
        if let Some(act) = act {
            act(delivery).await?;
        }
        self.0.lock().ended.push(n);
        Ok(())
    }

    pub(super) async fn reach(&self, n: u64, attempts: u64) {
        self.begin(n, attempts).await;
        self.0.lock().ended.push(n);
    }

    async fn begin(&self, n: u64, attempts: u64) {
        let gate = {
            let mut inner = self.0.lock();
            inner.seen.push((n, attempts));
            inner.gates.get(&n).cloned()
        };
        if let Some(gate) = gate {
            gate.pass().await;
        }
    }

    pub(super) async fn hook(
        &self,
        hook: &'static str,
        this: Instance<Lane>,
        tray: TrayHandle<Work>,
    ) -> Result<(), BoxError> {
        let act = {
            let mut inner = self.0.lock();
            inner.hooks.push(format!("{hook} {}", tray.id()));
            inner.hook_acts.get_mut(hook).and_then(VecDeque::pop_front)
        };
        match act {
            Some(act) => act(this, tray).await,
            None => Ok(()),
        }
    }
}
