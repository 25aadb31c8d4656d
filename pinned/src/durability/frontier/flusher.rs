//! The one task that carries a log to its store (D14).

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt;

use super::Shared;
use super::error::FrontierFailure;
use super::log::Unit;
use crate::durability::row::RowOp;
use crate::durability::store::StoreError;
use crate::error::BoxError;

/// Runs until the log is empty. Dropped before that, it fails the log: nobody else will carry on.
pub(super) fn run(shared: Arc<Shared>) -> impl Future<Output = ()> + Send + 'static {
    let mut flusher = Flusher {
        shared,
        at: Stage::Working,
    };
    async move {
        let outcome = flusher.flush().await;
        flusher.at = Stage::Ended;
        if let Err(failure) = outcome {
            flusher.shared.fail(failure);
        }
    }
}

struct Flusher {
    shared: Arc<Shared>,
    at: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Working,
    /// The log is empty. Whoever has just been told that a write is durable runs next and often writes again, which then
    /// needs no task of its own.
    Lingering,
    Ended,
}

impl Flusher {
    async fn flush(&mut self) -> Result<(), FrontierFailure> {
        loop {
            let shared = &self.shared;
            let lingers = self.at == Stage::Working;
            let unit = shared.log.lock().next(shared.batches, lingers);
            let Some(unit) = unit else {
                if !lingers {
                    return Ok(());
                }
                self.at = Stage::Lingering;
                self.linger().await;
                continue;
            };
            self.at = Stage::Working;
            let effects = match unit {
                Unit::Rows(run) => {
                    let (ops, effects) = run.into_ops();
                    let outcome = uncaught(self.write(ops)).await;
                    outcome.map_err(StoreError::Failed)??;
                    effects
                }
                Unit::Effect(effect) => {
                    let outcome = uncaught(effect).await;
                    outcome
                        .and_then(|ended| ended)
                        .map_err(FrontierFailure::Effect)?;
                    1
                }
            };
            self.shared.log.lock().advance(effects);
        }
    }

    /// One turn of the other tasks. What is enlisted meanwhile need not wait for the end of it: a store is idle that could
    /// begin with it.
    async fn linger(&self) {
        poll_fn(|cx| {
            self.shared.log.lock().linger(cx.waker().clone());
            Poll::Ready(())
        })
        .await;
        tokio::task::yield_now().await;
    }

    async fn write(&self, mut ops: Vec<RowOp>) -> Result<(), StoreError> {
        let (store, claim) = (&self.shared.store, self.shared.claim());
        if self.shared.batches {
            return store.apply_batch(claim, ops).await;
        }
        // One by one: the log hands them out so.
        match ops.pop() {
            None => Ok(()),
            Some(RowOp { key, state: None }) => store.delete_tray(claim, key).await,
            Some(RowOp {
                key,
                state: Some(state),
            }) => store.set_tray(claim, key, state.marked, state.doc).await,
        }
    }
}

/// A panic of a store or an effect is its failure: it must not pass for an abort of the instance.
async fn uncaught<T>(work: impl Future<Output = T>) -> Result<T, BoxError> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.map_err(|panic| {
        let said = crate::domain::panic_message(&*panic);
        format!("it panicked: {said}").into()
    })
}

impl Drop for Flusher {
    fn drop(&mut self) {
        match self.at {
            Stage::Ended => {}
            // Nothing is cut short.
            Stage::Lingering if self.shared.log.lock().rest() => {}
            Stage::Working | Stage::Lingering => self.shared.fail(FrontierFailure::Cancelled),
        }
    }
}
