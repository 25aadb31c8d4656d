//! One live instance, without an app around it.

use std::fmt;
use std::time::Duration;

use futures_util::FutureExt as _;
use pinned::{
    Context, HostOptions, Instance, PinnedApi, PinnedHost, PinnedWorker, ReadTurn, Refusal,
    RunningWorker, Unavailable, WorkerBuilder, WriteTurn,
};

use crate::barrier::BarrierStore;
use crate::client::{TestClient, client_for};

/// Where the instance stands (H17.4).
const NAMESPACE: &str = "/test";

/// Longer than any test: nothing but the test ends the instance.
const NEVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// One live instance of `T`, to be tested without requests.
///
/// Its context is a real one: the namespace is `/test`, the placement epoch 0, and what it makes durable is kept in
/// memory, where the test may hold it up ([`TestInstance::store`]). It is never idle; it ends with
/// [`TestInstance::close`], or when it aborts itself. Dropping it aborts it.
///
/// ```
/// # use pinned::{pinned_api, lifespan};
/// #[derive(Default)]
/// struct Counter { count: u64 }
///
/// #[pinned_api]
/// impl Counter {
///     async fn increment(&mut self) -> u64 { self.count += 1; self.count }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let counter = pinned_testing::instance::<Counter>("alice").await?;
/// assert_eq!(counter.write().await?.increment().await, 1);
/// assert_eq!(counter.read().await?.count, 1);
/// assert_eq!(counter.context().id(), "alice");
/// counter.close().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it aborts the instance"]
pub struct TestInstance<T> {
    instance: Instance<T>,
    host: PinnedHost<T>,
    store: BarrierStore,
    running: RunningWorker,
}

/// Why there is no instance.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// The worker around it could not be built.
    #[error(transparent)]
    Worker(#[from] pinned::Error),
    /// The id is not valid, or the setup failed.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Sets up an instance of `T` (H17.4).
///
/// # Errors
///
/// [`InstanceError`]: a bad id, or a setup that failed.
///
/// ```
/// # use pinned::pinned_api;
/// # #[derive(Default)] struct Room;
/// # #[pinned_api] impl Room {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert!(pinned_testing::instance::<Room>("no spaces").await.is_err());
/// # }
/// ```
pub async fn instance<T: PinnedApi>(id: &str) -> Result<TestInstance<T>, InstanceError> {
    instance_with(id, |worker| worker).await
}

/// As [`instance`], on a worker that `edit` has given more: shared state, a domain, a second host to call, a store that
/// holds something already (it takes the place of [`TestInstance::store`], which then stays empty).
///
/// # Errors
///
/// As [`instance`].
///
/// ```
/// # use pinned::{Context, lifespan, pinned_api};
/// struct Room { motto: String }
///
/// #[pinned_api]
/// impl Room {
///     #[lifespan::setup]
///     async fn setup(ctx: Context) -> Self {
///         Self { motto: ctx.state::<String>().map(|motto| motto.to_string()).unwrap_or_default() }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let room = pinned_testing::instance_with::<Room>("blue", |worker| worker.state("onwards".to_owned())).await?;
/// assert_eq!(room.read().await?.motto, "onwards");
/// room.close().await?;
/// # Ok(())
/// # }
/// ```
pub async fn instance_with<T: PinnedApi>(
    id: &str,
    edit: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
) -> Result<TestInstance<T>, InstanceError> {
    let store = BarrierStore::new();
    let options = HostOptions::new()
        .namespace(NAMESPACE)
        .idle_timeout(NEVER)
        .detached_timeout(NEVER);
    let builder = PinnedWorker::builder()
        .hostname("test")
        .store(store.clone())
        .host_with::<T>(options);
    let running = edit(builder).build()?.run_lifespan().await?;
    let host = running
        .worker()
        .hosted_at::<T>(NAMESPACE)
        .expect("hosted above");
    let instance = match host.instance(id).await {
        Ok(instance) => instance,
        Err(unavailable) => {
            running.shutdown().await?;
            return Err(unavailable.into());
        }
    };
    Ok(TestInstance {
        instance,
        host,
        store,
        running,
    })
}

impl<T: PinnedApi> TestInstance<T> {
    /// Waits for a shared turn: `&T`.
    ///
    /// # Errors
    ///
    /// As [`Instance::read`]; [`Refusal::Closing`] once it has been aborted.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn read(&self) -> Result<ReadTurn<T>, Refusal> {
        self.instance.read().await
    }

    /// Waits for the exclusive turn: `&mut T`.
    ///
    /// # Errors
    ///
    /// As [`Instance::write`]; [`Refusal::Closing`] once it has been aborted.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn write(&self) -> Result<WriteTurn<T>, Refusal> {
        self.instance.write().await
    }

    /// Its context.
    #[must_use]
    pub fn context(&self) -> Context {
        self.instance.context()
    }

    /// The handle that `this: Instance<Self>` handlers are given.
    #[must_use]
    pub fn handle(&self) -> Instance<T> {
        self.instance.clone()
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.instance.id()
    }

    /// The store behind it.
    #[must_use]
    pub fn store(&self) -> &BarrierStore {
        &self.store
    }

    /// The host around it.
    #[must_use]
    pub fn host(&self) -> &PinnedHost<T> {
        &self.host
    }

    /// A client of its worker, where it is `/test/<id>`.
    #[must_use]
    pub fn client(&self) -> TestClient {
        client_for(self.running.worker())
    }

    /// Whether it has ended: it has aborted itself, and its teardown has run.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.instance.closed().now_or_never().is_some()
    }

    /// Waits until it has aborted itself, and its teardown has run.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn aborted(&self) {
        self.instance.closed().await;
    }

    /// Tears it down, and waits until nothing of it is left.
    ///
    /// # Errors
    ///
    /// As [`RunningWorker::shutdown`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the wait; the close goes on.
    pub async fn close(self) -> pinned::Result<()> {
        self.running.shutdown().await
    }
}

impl<T: PinnedApi> fmt::Debug for TestInstance<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestInstance")
            .field("id", &self.id())
            .field("aborted", &self.is_aborted())
            .finish_non_exhaustive()
    }
}
