//! Calls to one of many counters within a process, without HTTP.

mod kameo;
mod mutex;
mod pinned;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::runtime::{self, Runtime};

pub use self::{
    kameo::KameoActors,
    mutex::MutexMap,
    pinned::{PinnedHandles, PinnedInstances},
};
use crate::Result;

/// Counters that are called in process.
pub trait Contender: Send + Sync + Sized + 'static {
    /// What the table calls it.
    const NAME: &'static str;

    /// Brings one live counter per id into being, within a runtime.
    fn start(ids: &[String]) -> impl Future<Output = Self> + Send;

    /// Adds one to the counter of `ids[index]` and returns the new count.
    fn increment(&self, index: usize) -> impl Future<Output = u64> + Send;
}

/// How the callers are run.
#[derive(Clone, Copy)]
pub enum Callers {
    /// One caller on a single-threaded runtime: the cost of a call that meets no other.
    Alone,
    /// 64 callers on a runtime with a thread per core: the cost per call under parallel load.
    Parallel,
}

impl Callers {
    /// What the table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "1 caller, 1 thread",
            Self::Parallel => "64 callers, a thread per core",
        }
    }

    fn count(self) -> usize {
        match self {
            Self::Alone => 1,
            Self::Parallel => 64,
        }
    }

    fn runtime(self) -> std::io::Result<Runtime> {
        match self {
            Self::Alone => runtime::Builder::new_current_thread(),
            Self::Parallel => runtime::Builder::new_multi_thread(),
        }
        .enable_all()
        .build()
    }
}

/// A contender that is up and can be measured round after round.
pub struct Arena<C> {
    runtime: Runtime,
    callers: Callers,
    contender: Arc<C>,
    ids: usize,
}

impl<C: Contender> Arena<C> {
    /// Starts the contender in a runtime of its own.
    ///
    /// # Errors
    /// When the runtime cannot be built.
    pub fn new(callers: Callers, ids: &[String]) -> Result<Self> {
        let runtime = callers.runtime()?;
        let contender = Arc::new(runtime.block_on(C::start(ids)));
        Ok(Self {
            runtime,
            callers,
            contender,
            ids: ids.len(),
        })
    }

    /// The mean time per call of `calls` calls over all ids, in nanoseconds of wall-clock time.
    ///
    /// # Errors
    /// When a caller panics.
    pub fn nanos_per_call(&self, calls: usize) -> Result<f64> {
        let callers = self.callers.count();
        let each = calls / callers;
        let elapsed: Duration = self.runtime.block_on(async {
            let start = Instant::now();
            let tasks: Vec<_> = (0..callers)
                .map(|caller| {
                    let contender = Arc::clone(&self.contender);
                    let (ids, first) = (self.ids, caller * self.ids / callers);
                    tokio::spawn(async move {
                        for call in 0..each {
                            contender.increment((first + call) % ids).await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await?;
            }
            Ok::<_, tokio::task::JoinError>(start.elapsed())
        })?;
        Ok(elapsed.as_nanos() as f64 / (each * callers) as f64)
    }
}
