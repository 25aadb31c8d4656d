//! Running a simulation.

use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use pinned::domain::Domain;
use tokio::runtime::Builder;
use tokio::time::Instant;

use super::backend::Backend;
use super::world::{CURRENT, World};
use super::{SimFailure, SimOptions, SimProcess, TraceEvent};

/// How much of a trace a failure shows.
const SHOWN: usize = 40;

/// A running simulation, as its test sees it. See the [module documentation](super).
#[derive(Clone)]
pub struct Sim {
    world: Arc<World>,
}

impl Sim {
    /// Runs `test` in a world of its own, and gives what it returns. Tasks that are left are dropped (S1.13).
    ///
    /// # Panics
    ///
    /// When `test` panics, and on a [`SimFailure`]; standard error shows the seed and the end of the trace. Also within
    /// a tokio runtime, since it brings its own: call it from a plain `#[test]`.
    ///
    /// ```
    /// use pinned_testing::sim::Sim;
    ///
    /// let draw = |seed| Sim::run(seed, |sim| async move { sim.domain().token_hex(8) });
    /// assert_eq!(draw(1), draw(1));
    /// assert_ne!(draw(1), draw(2));
    /// ```
    pub fn run<F, Fut>(seed: u64, test: F) -> Fut::Output
    where
        F: FnOnce(Self) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        Self::try_run(SimOptions::new(seed), test).unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// As [`Sim::run`], with more to choose and failures to look at.
    ///
    /// # Errors
    ///
    /// [`SimFailure`]: a deadlock, or virtual time beyond the horizon.
    ///
    /// # Panics
    ///
    /// When `test` panics.
    pub fn try_run<F, Fut>(options: SimOptions, test: F) -> Result<Fut::Output, SimFailure>
    where
        F: FnOnce(Self) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing that can be missing");
        let start = runtime.block_on(async { paused_now() });
        let world = Arc::new(World::new(options, runtime.handle().clone(), start));
        let living = world.enlist(None);
        let sim = Self {
            world: Arc::clone(&world),
        };
        let mut main = runtime.spawn(CURRENT.scope(living.id, test(sim)));
        let outcome = runtime.block_on(async {
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut main => return Ok(outcome),
                    () = quiet() => world.step()?,
                }
            }
        });
        drop(living);
        match outcome {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(panicked)) => {
                world.show_end();
                resume_unwind(panicked.into_panic())
            }
            Err(failure) => {
                world.show_end();
                Err(failure)
            }
        }
    }

    /// The simulated domain: hand it to [`WorkerBuilder::domain`](pinned::WorkerBuilder::domain).
    #[must_use]
    pub fn domain(&self) -> Domain {
        Domain::custom(Arc::new(Backend::new(Arc::clone(&self.world), None)))
    }

    /// Starts a process of its own within the simulation, which can be crashed alone: the next generation of `name`
    /// (S1.12).
    ///
    /// ```
    /// use pinned_testing::sim::{Crashed, Sim};
    ///
    /// Sim::run(7, |sim| async move {
    ///     let first = sim.process("worker");
    ///     let never = first.domain().spawn(std::future::pending::<()>());
    ///     first.crash();
    ///     assert_eq!(first.run(async { 1 }).await, Err(Crashed));
    ///     assert!(!never.is_finished(), "abandoned where it stood");
    ///     let second = sim.process("worker");
    ///     assert_eq!(second.generation(), 2);
    ///     assert_eq!(second.run(async { 1 }).await, Ok(1));
    /// });
    /// ```
    #[must_use]
    pub fn process(&self, name: &str) -> SimProcess {
        SimProcess::start(Arc::clone(&self.world), name)
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.world.options.seed
    }

    /// The virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.world.now()
    }

    /// Lets `by` of virtual time pass, and returns when all that is due by then has run and nothing is runnable.
    ///
    /// `advance(Duration::ZERO)` lets the system come to rest now.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pinned_testing::sim::Sim;
    ///
    /// Sim::run(3, |sim| async move {
    ///     let domain = sim.domain();
    ///     let minute = Duration::from_secs(60);
    ///     let task = domain.spawn({
    ///         let domain = domain.clone();
    ///         async move { domain.sleep(minute).await }
    ///     });
    ///     sim.advance(minute - Duration::from_nanos(1)).await;
    ///     assert!(!task.is_finished());
    ///     sim.advance(Duration::from_nanos(1)).await;
    ///     assert!(task.is_finished());
    /// });
    /// ```
    pub async fn advance(&self, by: Duration) {
        // The sender is dropped unused only with the run.
        let _ = self.world.advance(by).await;
    }

    /// Adds a line to the trace.
    pub fn note(&self, event: impl AsRef<str>) {
        self.world.note(event.as_ref());
    }

    /// The trace so far: one seed, one trace.
    #[must_use]
    pub fn trace(&self) -> Vec<TraceEvent> {
        self.world.trace()
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim")
            .field("seed", &self.seed())
            .field("elapsed", &self.elapsed())
            .finish_non_exhaustive()
    }
}

impl World {
    fn show_end(&self) {
        let trace = self.trace();
        let skipped = trace.len().saturating_sub(SHOWN);
        eprintln!(
            "a simulation failed with seed {}; its trace ends:",
            self.options.seed
        );
        for event in &trace[skipped..] {
            eprintln!("  {event}");
        }
    }
}

/// Resolves once nothing is runnable: only then does tokio's paused clock move, and how far it does is of no account.
#[allow(
    clippy::disallowed_methods,
    reason = "the simulation is what stands on tokio's clock"
)]
async fn quiet() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[allow(
    clippy::disallowed_methods,
    reason = "the simulation is what stands on tokio's clock"
)]
fn paused_now() -> Instant {
    Instant::now()
}
