//! Processes of a simulation, which can be crashed one by one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pinned::domain::Domain;
use tokio::sync::watch;

use super::backend::Backend;
use super::world::{LifeId, World};

/// One generation of a process: a view of the domain that can be crashed alone. Clones are the same process.
///
/// From [`Sim::process`](super::Sim::process). It shares the clock with everybody, has streams of randomness of its own,
/// which start afresh with each generation (S1.9), and takes what it has started along when it crashes.
#[derive(Clone)]
pub struct SimProcess {
    world: Arc<World>,
    life: Arc<Life>,
}

/// The process crashed before it came to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process has crashed")]
pub struct Crashed;

/// Whether one generation of a process lives.
pub(super) struct Life {
    pub(super) id: LifeId,
    name: String,
    generation: u64,
    ended: watch::Sender<bool>,
}

/// A task of a process: not polled any more, and not dropped either, once the process has crashed.
pub(super) struct Mortal {
    task: BoxFuture<'static, ()>,
    life: Option<Arc<Life>>,
}

impl SimProcess {
    pub(super) fn start(world: Arc<World>, name: &str) -> Self {
        let (id, generation) = world.open_life(name);
        let life = Arc::new(Life {
            id,
            name: name.to_owned(),
            generation,
            ended: watch::Sender::new(false),
        });
        Self { world, life }
    }

    /// The domain of this process.
    #[must_use]
    pub fn domain(&self) -> Domain {
        let life = Some(Arc::clone(&self.life));
        Domain::custom(Arc::new(Backend::new(Arc::clone(&self.world), life)))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.life.name
    }

    /// How many times a process of this name has been started, this one included.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.life.generation
    }

    /// Ends it here and now: whatever it has started is abandoned where it stands. Nothing is cancelled, no cleanup
    /// runs, and its timers vanish (S1.11).
    ///
    /// The task that calls this, if it is one of the process, comes to its next await and no further.
    pub fn crash(&self) {
        self.end("crash");
    }

    /// Ends it like [`SimProcess::crash`], once it has done what it had to.
    pub(super) fn exit(&self) {
        self.end("exit");
    }

    fn end(&self, how: &str) {
        let ends = self.life.ended.send_if_modified(|ended| {
            let ends = !*ended;
            *ended = true;
            ends
        });
        if ends {
            let (name, generation) = (self.name(), self.generation());
            let event = format!("{how} {name}/{generation}");
            self.world.end_life(self.life.id, &event);
        }
    }

    /// Whether it has crashed.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.life.has_ended()
    }

    /// Waits until it has crashed.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn crashed(&self) {
        // `self` keeps the sender.
        let _ = self.life.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Runs `program` as a task of the process, and gives what it returns (S3.3).
    ///
    /// # Errors
    ///
    /// [`Crashed`]: the process had no time to finish it.
    ///
    /// # Panics
    ///
    /// When `program` panics.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the result; the program goes on.
    pub async fn run<F>(&self, program: F) -> Result<F::Output, Crashed>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let program = self.domain().spawn(program);
        tokio::select! {
            // What it came to before the crash counts.
            biased;
            outcome = program => match outcome {
                Ok(output) => Ok(output),
                Err(error) if error.is_cancelled() => Err(Crashed),
                Err(error) => panic!("a program of {}: {error}", self.name()),
            },
            () = self.crashed() => Err(Crashed),
        }
    }
}

impl fmt::Debug for SimProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimProcess")
            .field("name", &self.name())
            .field("generation", &self.generation())
            .field("crashed", &self.is_crashed())
            .finish()
    }
}

impl Life {
    pub(super) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// A label of this generation's own (S1.12).
    pub(super) fn label(&self, label: &str) -> String {
        format!("{}/{}/{label}", self.name, self.generation)
    }
}

impl Mortal {
    pub(super) fn new(task: BoxFuture<'static, ()>, life: Option<Arc<Life>>) -> Self {
        Self { task, life }
    }
}

impl Future for Mortal {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.life.as_ref().is_some_and(|life| life.has_ended()) {
            return Poll::Pending;
        }
        self.task.poll_unpin(cx)
    }
}
