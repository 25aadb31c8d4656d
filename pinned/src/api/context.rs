//! What an instance knows of itself and may ask of its host.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::cluster::Cluster;
use super::definition::PinnedApi;
use super::lease::InstanceLease;
use super::request::RequestState;
use super::scope::Scope;
use super::seam::{Seam, boxed};
use super::task::{EvictionRequested, TaskHandle, TaskOutput};
use crate::domain::Domain;
use crate::durability::{Frontier, NoStateStore};
use crate::tray::settings::SINGLE_ID;
use crate::tray::trays::Absent;
use crate::tray::{MappedTray, SingleTray, Tray, TrayError, TrayHandle, TrayMap};

/// The context of one instance: handed to setup and to authorizers, and an extractor in every handler.
///
/// It is a cheap handle; keep it in the struct to reach it from anywhere.
///
/// ```
/// use pinned::{Context, lifespan, pinned_api, route};
///
/// struct Session { ctx: Context }
///
/// #[pinned_api("/sessions")]
/// impl Session {
///     #[lifespan::setup]
///     async fn setup(ctx: Context) -> Self { Self { ctx } }
///
///     #[route::get("/whoami")]
///     async fn whoami(&self) -> String { self.ctx.id().to_owned() }
/// }
/// ```
#[derive(Clone)]
pub struct Context {
    seam: Seam,
}

impl Context {
    pub(crate) fn new(seam: Seam) -> Self {
        Self { seam }
    }

    pub(crate) fn seam(&self) -> &Seam {
        &self.seam
    }

    /// The id of this instance.
    pub fn id(&self) -> &str {
        self.seam.id()
    }

    /// The namespace it is served under, with its slash.
    pub fn namespace(&self) -> &str {
        self.seam.namespace()
    }

    /// The worker's lease and this instance's wind-down.
    pub fn lease(&self) -> InstanceLease {
        InstanceLease::new(Arc::clone(&self.seam))
    }

    /// Time, randomness and tokens; everything that a simulation replaces.
    pub fn domain(&self) -> &Domain {
        self.seam.domain()
    }

    /// Calls to other instances by `/<namespace>/<id>/...`, with this instance as the caller.
    pub fn cluster(&self) -> Cluster {
        Cluster::new(Arc::clone(&self.seam))
    }

    /// The log of this instance's durable effects.
    ///
    /// # Errors
    ///
    /// [`NoStateStore`] when the worker has none.
    pub fn frontier(&self) -> Result<Frontier, NoStateStore> {
        self.seam.frontier()
    }

    /// A single tray of this instance, by the constant that `#[tray]` declares beside its handler.
    ///
    /// # Errors
    ///
    /// [`TrayError::NoStateStore`]; [`TrayError::Undeclared`] when `T` is not the type of this instance; an instance that
    /// is closing.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; an opening that was under way is given up.
    pub async fn tray<T: PinnedApi, W: Tray>(
        &self,
        tray: SingleTray<T, W>,
    ) -> Result<TrayHandle<W>, TrayError> {
        let trays = self.seam.trays()?;
        let core = trays.get(tray.name(), SINGLE_ID, Absent::Create).await?;
        Ok(TrayHandle::new(core))
    }

    /// A map of trays of this instance, by the constant that `#[tray(map)]` declares beside its handler.
    ///
    /// # Errors
    ///
    /// [`TrayError::NoStateStore`].
    pub fn trays<T: PinnedApi, W: Tray>(
        &self,
        trays: MappedTray<T, W>,
    ) -> Result<TrayMap<W>, TrayError> {
        Ok(TrayMap::new(self.seam.trays()?, trays.name()))
    }

    /// The placement epoch that this instance serves at, 0 without a control plane (H12.8).
    ///
    /// # Errors
    ///
    /// [`NoStateStore`] when the worker has none.
    pub fn placement_epoch(&self) -> Result<u64, NoStateStore> {
        self.seam.placement_epoch()
    }

    /// A value that the program gave its worker with
    /// [`WorkerBuilder::state`](crate::WorkerBuilder::state), by its type.
    pub fn state<S: Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        self.seam.shared_state().get()
    }

    /// Starts a task that is bound to this instance (H7).
    ///
    /// It blocks idle eviction while it runs, ends with the instance at the latest, and may return nothing or a
    /// `Result`, whose error is logged. It holds no turn: hand it an [`Instance`](crate::Instance) to take some.
    pub fn spawn<F>(&self, task: F) -> TaskHandle
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput,
    {
        let scope = Scope::outliving(Arc::clone(&self.seam));
        let task = scope.run(async move { task.await.into_end() });
        Arc::clone(&self.seam).spawn(boxed(task))
    }

    /// Ends this instance now: running work is cut off, teardown runs, the next request starts from a fresh setup.
    ///
    /// Decided at once, done in the background (H11.9). A handler may abort its own instance and still answer, if it
    /// returns without waiting (H5.5).
    pub fn abort(&self) {
        Arc::clone(&self.seam).abort();
    }

    /// Yields to an eviction: an error once the instance is winding down, for `?` in long work (H7.5).
    ///
    /// # Errors
    ///
    /// [`EvictionRequested`] while the instance is winding down.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; it never waits.
    pub async fn eviction_checkpoint(&self) -> Result<(), EvictionRequested> {
        if self.seam.winding_down() {
            Err(EvictionRequested)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("namespace", &self.namespace())
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl FromRequestParts<RequestState> for Context {
    type Rejection = Infallible;

    async fn from_request_parts(
        _parts: &mut Parts,
        state: &RequestState,
    ) -> Result<Self, Self::Rejection> {
        Ok(state.context().clone())
    }
}
