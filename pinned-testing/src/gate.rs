//! A point at which a test holds a handler.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// A gate between a handler and its test: the handler waits before it, the test learns of that and opens it.
///
/// Clones are the same gate; hand one to the worker with [`WorkerBuilder::state`](pinned::WorkerBuilder::state).
///
/// ```
/// # use pinned::{Context, PinnedWorker, pinned_api, route};
/// # #[derive(Default)] struct Room;
/// use pinned_testing::{Gate, TestApp};
///
/// #[pinned_api("/rooms")]
/// impl Room {
///     #[route::post("/slow")]
///     async fn slow(&mut self, ctx: Context) {
///         if let Some(gate) = ctx.state::<Gate>() { gate.pass().await; }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// let gate = Gate::new();
/// let app = TestApp::start(PinnedWorker::builder().host::<Room>("/rooms").state(gate.clone())).await?;
/// let request = app.client().post("/rooms/blue/slow");
/// let (answer, ()) = tokio::join!(request.send(), async {
///     gate.reached().await;
///     // The handler is in the middle of its work now.
///     gate.open();
/// });
/// assert_eq!(answer.status(), 200);
/// # app.shutdown().await
/// # }
/// ```
#[derive(Clone)]
pub struct Gate {
    sides: Arc<Sides>,
}

struct Sides {
    arrivals: Semaphore,
    passes: Semaphore,
}

impl Gate {
    /// A gate that is shut.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sides: Arc::new(Sides {
                arrivals: Semaphore::new(0),
                passes: Semaphore::new(0),
            }),
        }
    }

    /// The handler's side: says that it is here, and waits until it may go on.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a pass that was not used is left for the next.
    pub async fn pass(&self) {
        self.sides.arrivals.add_permits(1);
        // An error means that the gate is open for good.
        if let Ok(pass) = self.sides.passes.acquire().await {
            pass.forget();
        }
    }

    /// The test's side: waits for an arrival. Each call tells of one more.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn reached(&self) {
        // Never closed.
        if let Ok(arrival) = self.sides.arrivals.acquire().await {
            arrival.forget();
        }
    }

    /// How many have arrived that no [`Gate::reached`] has told of.
    #[must_use]
    pub fn arrivals(&self) -> usize {
        self.sides.arrivals.available_permits()
    }

    /// Lets everybody pass, now and later.
    pub fn open(&self) {
        self.sides.passes.close();
    }

    /// Lets one pass: the first that waits, or the next that comes.
    pub fn open_once(&self) {
        self.sides.passes.add_permits(1);
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("open", &self.sides.passes.is_closed())
            .field("arrivals", &self.arrivals())
            .finish()
    }
}
