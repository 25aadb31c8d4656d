//! A worker with its lifespan running.

use std::fmt;
use std::ops::Deref;

use pinned::{HostOptions, PinnedApi, PinnedHost, PinnedWorker, RunningWorker, WorkerBuilder};

use crate::client::{TestClient, client_for};

/// The namespace of a type that names none (H17.5).
const DEFAULT_NAMESPACE: &str = "/threads";

/// A worker whose hosts run, in this process.
///
/// Dropping it aborts every instance without waiting; [`TestApp::shutdown`] closes them in order.
///
/// ```
/// # use pinned::{PinnedWorker, pinned_api};
/// # #[derive(Default)] struct Room;
/// # #[derive(Default)] struct Lobby;
/// # #[pinned_api] impl Room {}
/// # #[pinned_api] impl Lobby {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// use pinned_testing::TestApp;
///
/// let app = TestApp::start(
///     PinnedWorker::builder().host::<Room>("/rooms").host::<Lobby>("/lobbies"),
/// )
/// .await?;
/// assert!(app.host::<Lobby>().is_empty());
/// app.shutdown().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it aborts every instance"]
#[derive(Debug)]
pub struct TestApp {
    running: RunningWorker,
}

/// Serves `T` with its own options: the namespace is that of its attribute, or else `/threads`.
///
/// # Errors
///
/// As [`WorkerBuilder::build`].
///
/// ```
/// # use pinned::pinned_api;
/// # #[derive(Default)] struct Room;
/// # #[pinned_api] impl Room {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// let app = pinned_testing::pinned_app::<Room>().await?;
/// assert_eq!(app.host::<Room>().namespace(), "/threads");
/// # app.shutdown().await
/// # }
/// ```
pub async fn pinned_app<T: PinnedApi>() -> pinned::Result<TestApp> {
    pinned_app_with::<T>(HostOptions::new()).await
}

/// As [`pinned_app`], with options of the test's own.
///
/// # Errors
///
/// As [`WorkerBuilder::build`].
///
/// ```
/// # use pinned::pinned_api;
/// # #[derive(Default)] struct Room;
/// # #[pinned_api] impl Room {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// use pinned::HostOptions;
///
/// let options = HostOptions::new().namespace("/rooms").max_instances(1);
/// let app = pinned_testing::pinned_app_with::<Room>(options).await?;
/// # app.shutdown().await
/// # }
/// ```
pub async fn pinned_app_with<T: PinnedApi>(options: HostOptions) -> pinned::Result<TestApp> {
    let options = if options.chosen_namespace().is_none() && T::NAMESPACE.is_none() {
        options.namespace(DEFAULT_NAMESPACE)
    } else {
        options
    };
    TestApp::start(PinnedWorker::builder().host_with::<T>(options)).await
}

/// As [`pinned_app`], for tests that need no more than a client; it keeps the app alive.
///
/// # Errors
///
/// As [`WorkerBuilder::build`].
///
/// ```
/// # use pinned::{pinned_api, route};
/// # #[derive(Default)] struct Room;
/// # #[pinned_api("/rooms")]
/// # impl Room {
/// #     #[route::get("/")] async fn name(&self) -> &'static str { "a room" }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// let client = pinned_testing::pinned_client::<Room>().await?;
/// assert_eq!(client.get("/rooms/blue").send().await.text().await, "a room");
/// # Ok(())
/// # }
/// ```
pub async fn pinned_client<T: PinnedApi>() -> pinned::Result<PinnedClient> {
    let app = pinned_app::<T>().await?;
    Ok(PinnedClient {
        client: app.client(),
        app,
    })
}

/// A [`TestClient`] together with the app that it talks to, from [`pinned_client`].
///
/// ```
/// # use pinned::pinned_api;
/// # #[derive(Default)] struct Room;
/// # #[pinned_api("/rooms")] impl Room {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// let client = pinned_testing::pinned_client::<Room>().await?;
/// assert!(client.app().host::<Room>().is_empty());
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it aborts every instance"]
pub struct PinnedClient {
    client: TestClient,
    app: TestApp,
}

// ===== impl TestApp =====

impl TestApp {
    /// Builds the worker and starts its hosts.
    ///
    /// # Errors
    ///
    /// As [`WorkerBuilder::build`].
    pub async fn start(builder: WorkerBuilder) -> pinned::Result<Self> {
        let running = builder.build()?.run_lifespan().await?;
        Ok(Self { running })
    }

    /// The worker.
    #[must_use]
    pub fn worker(&self) -> &PinnedWorker {
        self.running.worker()
    }

    /// The typed handle of the first namespace that hosts `T`.
    ///
    /// # Panics
    ///
    /// When no namespace does.
    #[must_use]
    pub fn host<T: PinnedApi>(&self) -> PinnedHost<T> {
        self.worker()
            .hosted::<T>()
            .unwrap_or_else(|| panic!("{} is not hosted in this app", std::any::type_name::<T>()))
    }

    /// A client of this app, as [`client_for`] makes it.
    #[must_use]
    pub fn client(&self) -> TestClient {
        client_for(self.worker())
    }

    /// Closes every instance, in order, and waits until nothing of any is left.
    ///
    /// # Errors
    ///
    /// As [`RunningWorker::shutdown`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the wait; the closes go on.
    pub async fn shutdown(self) -> pinned::Result<()> {
        self.running.shutdown().await
    }
}

// ===== impl PinnedClient =====

impl PinnedClient {
    /// The app behind the client.
    pub fn app(&self) -> &TestApp {
        &self.app
    }

    /// Takes the app back, to shut it down in order.
    pub fn into_app(self) -> TestApp {
        self.app
    }
}

impl Deref for PinnedClient {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.client
    }
}

impl fmt::Debug for PinnedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedClient").field(&self.app).finish()
    }
}
