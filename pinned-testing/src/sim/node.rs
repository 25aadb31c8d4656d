//! A worker that can be crashed and started again over the same disk.

use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;

use pinned::{PinnedWorker, RunningWorker, WorkerBuilder};

use super::Sim;
use super::process::{Crashed, SimProcess};
use super::store::{BadSchedule, SimDisk, SimSchedule, SimStore};
use crate::client::{TestClient, client_for};
use crate::placements::ScriptedPlacements;

type Configure = Box<dyn Fn(WorkerBuilder, &SimStore) -> WorkerBuilder + Send + Sync>;

/// A crashable process with one real worker in it, over a disk that outlives it (S3.1).
///
/// Each start is a generation: a fresh worker, client and store, at an epoch one higher than the last, which every
/// request of its client carries. The worker is a placed one: nothing but requests activates instances.
///
/// ```
/// # use pinned::{Context, pinned_api, route};
/// # #[derive(Default)] struct Room;
/// # #[pinned_api("/rooms")]
/// # impl Room { #[route::get("/")] async fn name(&self) -> &'static str { "a room" } }
/// use pinned_testing::sim::{Crashed, Node, Sim, SimDisk};
///
/// Sim::run(7, |sim| async move {
///     let mut node = Node::new(&sim, "worker", SimDisk::new(), |worker, _| worker.host::<Room>("/rooms"));
///     node.start().await.expect("started");
///     let name = node.run(|client| async move { client.get("/rooms/blue").send().await.text().await });
///     assert_eq!(name.await.as_deref(), Ok("a room"));
///
///     node.crash();
///     assert_eq!(node.run(|_| async { 1 }).await, Err(Crashed));
///     node.start().await.expect("started again");
///     assert_eq!(node.epoch(), 2);
///     node.stop().await.expect("stopped");
/// });
/// ```
pub struct Node {
    sim: Sim,
    name: String,
    disk: SimDisk,
    configure: Configure,
    schedule: SimSchedule,
    crash_points: Vec<u64>,
    epoch: u64,
    current: Option<Generation>,
    /// The workers of those that have crashed: a crash cleans nothing up.
    remains: Vec<Generation>,
}

struct Generation {
    process: SimProcess,
    store: SimStore,
    client: TestClient,
    running: RunningWorker,
}

/// Why a node did not start or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// It crashed on the way.
    #[error(transparent)]
    Crashed(#[from] Crashed),
    /// The worker could not be built, started or stopped.
    #[error(transparent)]
    Worker(#[from] pinned::Error),
    /// The schedule of its store cannot be kept.
    #[error(transparent)]
    Schedule(#[from] BadSchedule),
}

impl Node {
    /// A node that is not started. `configure` gives each generation's worker what it hosts; the store is that of the
    /// generation, and given to the worker already.
    pub fn new(
        sim: &Sim,
        name: impl Into<String>,
        disk: SimDisk,
        configure: impl Fn(WorkerBuilder, &SimStore) -> WorkerBuilder + Send + Sync + 'static,
    ) -> Self {
        Self {
            sim: sim.clone(),
            name: name.into(),
            disk,
            configure: Box::new(configure),
            schedule: SimSchedule::new(),
            crash_points: Vec::new(),
            epoch: 0,
            current: None,
            remains: Vec::new(),
        }
    }

    /// What its stores do, from the next start on.
    #[must_use]
    pub fn schedule(mut self, schedule: SimSchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Crashes it before these operations of its disk, each in one of its lives (S3.2).
    ///
    /// # Panics
    ///
    /// When they do not begin above 0 and grow.
    #[must_use]
    pub fn crash_before(mut self, points: impl Into<Vec<u64>>) -> Self {
        let points = points.into();
        assert!(
            points.first().is_none_or(|first| *first > 0) && points.is_sorted_by(|a, b| a < b),
            "crash points are positive and grow: {points:?}"
        );
        self.crash_points = points;
        self
    }

    /// Starts the next generation.
    ///
    /// # Errors
    ///
    /// [`NodeError`]
    ///
    /// # Panics
    ///
    /// When the last one still runs.
    pub async fn start(&mut self) -> Result<(), NodeError> {
        if let Some(generation) = self.current.take() {
            let crashed = generation.process.is_crashed();
            assert!(crashed, "{} runs already", self.name);
            self.remains.push(generation);
        }
        self.epoch += 1;
        let process = self.sim.process(&self.name);
        let store = SimStore::new(&process.domain(), &self.disk, self.crashing(&process))?;
        let builder = PinnedWorker::builder()
            .hostname(&self.name)
            .domain(process.domain())
            .placements(ScriptedPlacements::new())
            .store(store.clone());
        let worker = (self.configure)(builder, &store).build()?;
        let client = client_for(&worker).header("pinboard-epoch", self.epoch);
        let running = process
            .run(async move { worker.run_lifespan().await })
            .await??;
        self.current = Some(Generation {
            process,
            store,
            client,
            running,
        });
        Ok(())
    }

    /// Runs a client program beside the worker, until it ends or the node does (S3.3).
    ///
    /// # Errors
    ///
    /// [`Crashed`]: the node has crashed before the program came to a result, or is not started.
    ///
    /// # Panics
    ///
    /// When the program panics.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the result; the program goes on.
    pub async fn run<P, F>(&self, program: P) -> Result<F::Output, Crashed>
    where
        P: FnOnce(TestClient) -> F,
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let generation = self.current.as_ref().ok_or(Crashed)?;
        let program = program(generation.client.clone());
        generation.process.run(program).await
    }

    /// Crashes it here and now; one that is not started stays so.
    pub fn crash(&self) {
        if let Some(generation) = &self.current {
            generation.process.crash();
        }
    }

    /// Stops it in good order: its instances are torn down.
    ///
    /// # Errors
    ///
    /// [`NodeError`]: it crashed meanwhile, or the worker did not stop cleanly.
    pub async fn stop(&mut self) -> Result<(), NodeError> {
        let Some(generation) = self.current.take() else {
            return Err(Crashed.into());
        };
        if generation.process.is_crashed() {
            self.remains.push(generation);
            return Err(Crashed.into());
        }
        let Generation {
            process, running, ..
        } = generation;
        let stopped = process.run(running.shutdown()).await?;
        process.exit();
        Ok(stopped?)
    }

    /// Whether it is started and has not crashed.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|generation| !generation.process.is_crashed())
    }

    /// The epoch of the generation that was started last; 0 before the first.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The disk.
    #[must_use]
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// The process of the generation that was started last.
    #[must_use]
    pub fn process(&self) -> Option<&SimProcess> {
        self.current.as_ref().map(|generation| &generation.process)
    }

    /// The store of the generation that was started last.
    #[must_use]
    pub fn store(&self) -> Option<&SimStore> {
        self.current.as_ref().map(|generation| &generation.store)
    }

    /// Its worker.
    #[must_use]
    pub fn worker(&self) -> Option<&PinnedWorker> {
        let generation = self.current.as_ref()?;
        Some(generation.running.worker())
    }

    /// The schedule, with the crash points and the end of the process in it.
    fn crashing(&self, process: &SimProcess) -> SimSchedule {
        let (schedule, points) = (self.schedule.clone(), self.crash_points.clone());
        let process = process.clone();
        self.schedule.clone().before_op(move |op| {
            if points.binary_search(&op.index).is_err() && schedule.survives(op) {
                return ControlFlow::Continue(());
            }
            process.crash();
            ControlFlow::Break(())
        })
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name)
            .field("epoch", &self.epoch)
            .field("running", &self.is_running())
            .finish_non_exhaustive()
    }
}
