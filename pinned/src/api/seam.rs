//! The seam between an instance and what hosts it (H15.5).
//!
//! Everything an instance, its handlers and its context may ask of a host goes through this one trait, so that
//! nothing above needs to know the directory, and the host needs to know no user type.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::Request;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::chain::ChainHold;
use super::cluster::ClusterError;
use super::definition::AnyValue;
use super::lease::LeaseHooks;
use super::refusal::{Refusal, Unavailable};
use super::state::SharedState;
use super::task::{TaskEnd, TaskHandle};
use crate::domain::Domain;
use crate::durability::{Frontier, NoStateStore};
use crate::lease::Lease;
use crate::tray::trays::Trays;
use crate::ws::Afterlife;

/// A hosted instance, without its type.
pub(crate) type Seam = Arc<dyn InstanceSeam>;

/// A turn that was granted, with the value it gives access to.
///
/// The value moves: an exclusive turn holds the only reference to it, so that `Arc::get_mut` is what proves `&mut T`,
/// and a shared one holds a clone. It comes back with the turn.
pub(crate) struct Turn {
    pub(crate) kind: TurnKind,
    pub(crate) value: AnyValue,
}

/// Whether a turn is shared (`&self`) or exclusive (`&mut self`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnKind {
    Shared,
    Exclusive,
}

impl TurnKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        }
    }
}

/// The classes of tracked work that the close order tells apart (H11.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkClass {
    /// A running HTTP handler or a turn held from outside.
    Handler,
    /// A WebSocket session.
    Stream,
}

/// Work that counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) class: WorkClass,
    /// When its request was admitted; the duration since then is sampled at its end (H5.9).
    pub(crate) started: Option<Instant>,
}

/// What came of asking to begin.
pub(crate) enum Begin {
    /// The work counts from here on.
    Started(Option<TurnAnswer>),
    /// The instance is not resident yet: activate, then ask again.
    NotResident,
    Refused(Refusal),
}

/// What came of asking for a turn.
pub(crate) enum TurnAnswer {
    Granted(Turn),
    /// Granted, or refused, through the receiver. The waiter stays queued until the receiver is dropped.
    Queued(oneshot::Receiver<Result<Turn, Refusal>>),
}

/// A response body that the host may end (H6.3). Ending it twice does nothing.
pub(crate) trait OpenStream: Send + Sync + 'static {
    fn end(&self);
}

pub(crate) trait InstanceSeam: Send + Sync + 'static {
    fn id(&self) -> &str;
    fn namespace(&self) -> &str;
    fn domain(&self) -> &Domain;
    fn worker_lease(&self) -> &Lease;
    fn shared_state(&self) -> &SharedState;
    fn turn_timeout(&self) -> Duration;

    fn frontier(&self) -> Result<Frontier, NoStateStore>;
    fn trays(&self) -> Result<Arc<Trays>, NoStateStore>;
    fn placement_epoch(&self) -> Result<u64, NoStateStore>;

    fn winding_down(&self) -> bool;
    fn eviction_deadline(&self) -> Option<Instant>;
    fn wind_down(self: Arc<Self>, deadline: Option<Duration>);
    fn configure_hooks(&self, hooks: LeaseHooks);
    fn abort(self: Arc<Self>);
    /// Resolves once the instance is gone: torn down, and out of the directory.
    fn closed(self: Arc<Self>) -> BoxFuture<'static, ()>;
    fn spawn(self: Arc<Self>, task: BoxFuture<'static, TaskEnd>) -> TaskHandle;
    fn call(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response, ClusterError>>;
    /// Looks after the end of a socket that the instance has opened: it is cut off with the instance's own streams, and the
    /// close waits for its goodbye. It keeps the instance from nothing else.
    fn look_after(self: Arc<Self>, socket: Afterlife);

    /// An admitted request turns into work, in one step: it never counts as neither.
    ///
    /// Refused or not resident, it still counts as admitted.
    fn begin(&self, class: WorkClass, turn: Option<(TurnKind, ChainHold)>) -> Begin;
    /// An admitted request leaves before it has begun: refused by its authorizer or its arguments, or given up by its
    /// client. The last one out of a cold record discards it (H2.17).
    fn depart(self: Arc<Self>);
    /// A request failed because the setup did (H4.6).
    fn setup_failed(&self, websocket: bool);
    /// One sample of the duration histogram, for a request that was admitted at `started` (H5.9).
    fn sample(&self, started: Instant);
    /// Starts or joins the activation of this instance.
    fn activate(self: Arc<Self>) -> BoxFuture<'static, Result<(), Unavailable>>;

    /// Asks for a turn for work that counts already.
    ///
    /// A shared turn within a shared turn of the same chain is granted past whoever is queued: it needs nothing that
    /// its ancestor does not hold, and behind a writer that waits for that ancestor it would wait for ever. Any other
    /// turn of an instance that the chain holds is refused as [`Refusal::CallChain`].
    fn take_turn(&self, turn: TurnKind, hold: ChainHold) -> Result<TurnAnswer, Refusal>;
    /// Work ends, a turn is given back, or both; in one step. `torn`: a panic passed through the holder of the turn,
    /// so nobody may see the instance again.
    fn finish(&self, work: Option<Work>, turn: Option<Turn>, torn: bool);
    /// A handler ends and its streaming body begins, in one step. `None`: the instance is gone, end the body.
    fn finish_into_stream(
        &self,
        work: Work,
        turn: Option<Turn>,
        stream: Arc<dyn OpenStream>,
    ) -> Option<u64>;
    fn stream_progressed(&self);
    fn stream_ended(self: Arc<Self>, key: u64);
    /// A waiter for a turn went away.
    fn forget_waiters(&self);
    /// Resolves once work of this class is to be cut off.
    fn cut_off(&self, class: WorkClass) -> BoxFuture<'_, ()>;
    /// A panic passed through a handler.
    fn abort_after_panic(self: Arc<Self>, handler: &'static str);
}

/// The same instance, not merely the same id.
pub(crate) fn same_instance(a: &Seam, b: &Seam) -> bool {
    Arc::ptr_eq(a, b)
}

/// A future that is boxed once so that it can move to a task of its own.
pub(crate) fn boxed<'a, F>(future: F) -> BoxFuture<'a, F::Output>
where
    F: Future + Send + 'a,
{
    Box::pin(future)
}
