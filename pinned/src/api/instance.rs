//! A handle of a live instance.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::context::Context;
use super::definition::PinnedApi;
use super::refusal::Refusal;
use super::request::RequestState;
use super::seam::{Seam, TurnKind};
use super::turn::{ReadTurn, WriteTurn, take_turn};
use crate::tray::{MappedTray, SingleTray, Tray, TrayError, TrayHandle, TrayMap};

/// One live instance of `T`: the receiver of handlers that hold no turn of their own, and an extractor.
///
/// `this: Instance<Self>` is the receiver for WebSockets, streams and long work: take a turn for as long as it is
/// needed and give it back before the next wait.
///
/// ```
/// use pinned::{Instance, Refusal, pinned_api, route};
///
/// #[derive(Default)]
/// struct Counter { count: u64 }
///
/// #[pinned_api("/counters")]
/// impl Counter {
///     #[route::post("/slowly")]
///     async fn slowly(this: Instance<Self>) -> Result<String, Refusal> {
///         let before = this.read().await?.count;
///         // Long work, with no turn held: other handlers run.
///         let mut counter = this.write().await?;
///         counter.count = before + 1;
///         Ok(counter.count.to_string())
///     }
/// }
/// ```
pub struct Instance<T> {
    seam: Seam,
    of: PhantomData<fn() -> T>,
}

impl<T: PinnedApi> Instance<T> {
    pub(crate) fn new(seam: Seam) -> Self {
        Self {
            seam,
            of: PhantomData,
        }
    }

    /// The id.
    pub fn id(&self) -> &str {
        self.seam.id()
    }

    /// Resolves once this instance is gone, and its teardown has run.
    ///
    /// For what stands outside of it: work of the instance itself would wait for its own end.
    #[doc(hidden)]
    pub async fn closed(&self) {
        Arc::clone(&self.seam).closed().await;
    }

    /// The instance's context.
    pub fn context(&self) -> Context {
        Context::new(Arc::clone(&self.seam))
    }

    /// A single tray: [`Context::tray`] of this instance's own type.
    ///
    /// # Errors
    ///
    /// As [`Context::tray`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; an opening that was under way is given up.
    pub async fn tray<W: Tray>(&self, tray: SingleTray<T, W>) -> Result<TrayHandle<W>, TrayError> {
        self.context().tray(tray).await
    }

    /// A map of trays: [`Context::trays`] of this instance's own type.
    ///
    /// # Errors
    ///
    /// As [`Context::trays`].
    pub fn trays<W: Tray>(&self, trays: MappedTray<T, W>) -> Result<TrayMap<W>, TrayError> {
        self.context().trays(trays)
    }

    /// Waits for a shared turn, first come, first served.
    ///
    /// # Errors
    ///
    /// [`Refusal::TurnTimeout`] after `turn_timeout`, [`Refusal::TurnQueue`] when `max_waiting` callers wait,
    /// [`Refusal::CallChain`] when this very chain of calls holds the exclusive turn, [`Refusal::Closing`] once the
    /// instance is torn down. The instance's own handlers, tasks and bodies are not told of that last one: they are cut
    /// off where they wait.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future leaves the queue, and gives back a turn that was granted meanwhile.
    pub async fn read(&self) -> Result<ReadTurn<T>, Refusal> {
        ReadTurn::new(take_turn(&self.seam, TurnKind::Shared).await?)
    }

    /// Waits for the exclusive turn, first come, first served.
    ///
    /// # Errors
    ///
    /// As [`Instance::read`]; [`Refusal::CallChain`] when this chain of calls holds any turn of the instance.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future leaves the queue, and gives back a turn that was granted meanwhile.
    pub async fn write(&self) -> Result<WriteTurn<T>, Refusal> {
        WriteTurn::new(take_turn(&self.seam, TurnKind::Exclusive).await?)
    }
}

impl<T> Clone for Instance<T> {
    fn clone(&self) -> Self {
        Self {
            seam: Arc::clone(&self.seam),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Instance<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("namespace", &self.seam.namespace())
            .field("id", &self.seam.id())
            .finish()
    }
}

impl<T: PinnedApi> FromRequestParts<RequestState> for Instance<T> {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        _parts: &mut Parts,
        state: &RequestState,
    ) -> Result<Self, Self::Rejection> {
        Ok(Self::new(Arc::clone(state.seam())))
    }
}
