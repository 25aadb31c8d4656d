//! One live instance of your struct per id, with an HTTP and WebSocket surface.
//!
//! Annotate a plain struct, run one line, and every id under its namespace is one live instance: requests to it meet
//! there, `&mut self` handlers take turns, and nothing else holds its state.
//!
//! ```no_run
//! use pinned::{Json, PinnedWorker, pinned_api, route};
//!
//! #[derive(Default)]
//! struct Counter { count: u64 }
//!
//! #[pinned_api("/counters")]
//! impl Counter {
//!     #[route::post("/increment")]
//!     async fn increment(&mut self) -> Json<u64> { self.count += 1; Json(self.count) }
//!
//!     #[route::get("/")]
//!     async fn read(&self) -> Json<u64> { Json(self.count) }
//! }
//!
//! #[tokio::main]
//! async fn main() -> pinned::Result<()> { PinnedWorker::from_registry()?.serve().await }
//! ```
//!
//! ## Where to look
//!
//! | To | read |
//! |---|---|
//! | annotate a struct | [`macro@pinned_api`], [`route`], [`lifespan`] |
//! | choose how handlers run | [`Instance`], [`ReadTurn`], [`WriteTurn`] |
//! | keep state across restarts | [`Durable`](macro@Durable), [`Persistent`] |
//! | work through durable queues | [`Tray`](macro@Tray), [`macro@inbox`], [`TrayHandle`], [`Dispatch`] |
//! | know when something is durable | [`Receipt`], [`Frontier`], [`FrontierError`] |
//! | choose or write a state store | [`durability`] |
//! | authorize requests | [`Auth`], [`Connection`], [`Denied`] |
//! | know what an instance may ask of its host | [`Context`], [`InstanceLease`] |
//! | talk over WebSockets | [`ws`] |
//! | serve | [`PinnedWorker`], [`WorkerBuilder`], [`HostOptions`] |
//! | tell a load balancer or Kubernetes how it is | [`PinnedWorker::probes`], [`Unready`], [`SelfProbe`] |
//! | call other instances, or open a WebSocket to one | [`Cluster`], [`ClusterRequest`], [`ClusterSocketRequest`] |
//! | call instances from code of the same process | [`PinnedHost`] |
//! | see what a host answers itself | [`Refusal`] |
//! | follow the worker's lease | [`lease`] |
//! | show pages state that tells them what changed | [`observable`] |
//! | take time, tasks and randomness from one place | [`domain`] |
//!
//! ## Features
//!
//! | Feature | default? | what it adds |
//! |---|---|---|
//! | `sqlite` | yes | the state store in a file, `durability::SqliteStore` |
//! | `fleet` | yes | joining the fleet of a pinboard: registration, heartbeats, calls to instances on other workers |
//! | `postgres` | no | the state store on PostgreSQL, `durability::postgres::PostgresStore` |
//! | `metrics` | no | `WorkerBuilder::metrics`: `/metrics` in the Prometheus text format |

mod api;
mod authoring;
pub mod durability;
mod error;
mod fleet;
mod host;
pub mod lease;
pub mod observable;
mod registry;
mod tray;
mod worker;
pub mod ws;

/// The `axum` whose extractors and responses handlers take, for programs that do not name it as a dependency.
pub use ::axum;
pub use ::axum::Json;
pub use pinned_domain as domain;
pub use pinned_wire as wire;
#[doc(inline)]
pub use pinned_wire::attestation::Caller as Attestation;

pub use crate::api::auth::{Auth, AuthRejected, AuthReturn, Connection, Denied};
pub use crate::api::cluster::{
    Cluster, ClusterError, ClusterRequest, ClusterResponse, ClusterSocketRequest, MAX_CALL_DEPTH,
    SocketRefused,
};
pub use crate::api::context::Context;
pub use crate::api::definition::PinnedApi;
pub use crate::api::durable::{Durable, Stored};
pub use crate::api::instance::Instance;
pub use crate::api::lease::{InstanceLease, InstanceLeaseSettings};
pub use crate::api::lifespan::{IntoSetupError, SetupError, SetupReturn, TeardownReturn};
pub use crate::api::refusal::{Refusal, Unavailable};
pub use crate::api::request::RequestState;
pub use crate::api::route::{Method, RouteAuth, RouteSpec};
pub use crate::api::socket::{SocketFailure, SocketReturn};
pub use crate::api::task::{EvictionRequested, TaskOutput};
pub use crate::api::tray::TrayReturn;
pub use crate::api::turn::{ReadTurn, WriteTurn};
pub use crate::authoring::{Durable, Tray, authorize, inbox, lifespan, pinned_api, route, stats};
pub use crate::durability::{Frontier, FrontierError, NoStateStore, Receipt};
pub use crate::error::{BoxError, Error, Result};
#[doc(hidden)]
#[cfg(feature = "fleet")]
pub use crate::fleet::transport::{ControlAnswer, ControlPlane, DataPlane};
#[doc(hidden)]
pub use crate::host::env::Placements;
pub use crate::host::handle::PinnedHost;
pub use crate::host::options::HostOptions;
pub use crate::observable::Observable;
pub use crate::tray::{
    AdmissionReturn, Dispatch, DispatchCancelled, MappedTray, Outcome, Persistent,
    PersistentOutbox, PersistentQueue, QueueError, SingleTray, Tray, TrayError, TrayHandle,
    TrayLifecycle, TrayMap, TraySource,
};
pub use crate::worker::{
    PinnedWorker, RunningWorker, SelfProbe, SigtermDrain, Unready, WorkerBuilder,
};
pub use crate::ws::{WebSocket, WebSocketUpgrade};

/// What generated code needs. Not public API: it may change in any release.
#[doc(hidden)]
pub mod __private {
    pub use axum::response::{IntoResponse, Response};
    pub use futures_util::future::BoxFuture;
    pub use inventory;
    pub use serde_json::{Error as JsonError, Value, to_value};
    pub use std::boxed::Box;
    pub use std::time::Duration;

    pub use crate::api::auth::{AuthOutput, AuthReturn, Connection, Denied};
    pub use crate::api::call::Call;
    pub use crate::api::context::Context;
    pub use crate::api::definition::{DeclaredOptions, PinnedApi};
    pub use crate::api::durable::{
        Durable, DurableByDefault, FromDefault, FromStored, IsDurable, IsNotDurable, OwnDeclared,
        OwnField, OwnInitial, WithoutSetup, load_stored, needs_store,
    };
    pub use crate::api::expansion::{
        Argument, CallerOf, RefuseLast, RefusePart, TakeLast, TakePart, same_caller, sendable,
    };
    pub use crate::api::handler::HandlerFuture;
    pub use crate::api::instance::Instance;
    pub use crate::api::lifespan::{SetupError, SetupReturn, TeardownReturn};
    pub use crate::api::request::RequestState;
    pub use crate::api::route::{AuthFn, HandlerFn, Method, Route, RouteAuth, RouteSpec};
    pub use crate::api::socket::SocketReturn;
    pub use crate::api::tray::{DeclaredTray, HandledItem, TrayDeclaration, TrayHook, TrayReturn};
    pub use crate::durability::Receipt;
    pub use crate::error::BoxError;
    pub use crate::registry::Registration;
    pub use crate::tray::{
        AdmissionReturn, Changes, DeclaredField, DeclaredQueue, Dispatch, Field, Hydrated,
        InitialField, ItemQueue, KeyedAdmission, KeyedCount, MappedTray, SingleTray, Tray,
        TrayError, TrayHandle, TrayLifecycle, TraySettings, TraySource, UnkeptField, reopened,
    };
    pub use crate::ws::FromUpgrade;

    /// The attributes that need no import inside a block.
    pub mod attributes {
        pub use pinned_macros::{authorize, stats, tray};
    }
}
