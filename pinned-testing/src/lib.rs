//! The test harness of `pinned`: apps and clients in one process, stand-ins for what is behind a worker, and a
//! simulated world.
//!
//! Everything but the servers runs in the test's own process, without sockets, so that a paused clock is all the time
//! there is.
//!
//! ```toml
//! [dev-dependencies]
//! pinned-testing = { path = "../pinned/pinned-testing" }
//! tokio = { version = "1", features = ["macros", "rt", "test-util"] }
//! ```
//!
//! ```standalone_crate
//! use std::time::Duration;
//!
//! use pinned::{Json, PinnedWorker, pinned_api, route};
//! use pinned_testing::TestApp;
//!
//! #[derive(Default)]
//! struct Counter { count: u64 }
//!
//! #[pinned_api("/counters", idle_timeout = "5m")]
//! impl Counter {
//!     #[route::post("/increment")]
//!     async fn increment(&mut self) -> Json<u64> { self.count += 1; Json(self.count) }
//!
//!     #[route::get("/")]
//!     async fn read(&self) -> Json<u64> { Json(self.count) }
//! }
//!
//! #[derive(Default)]
//! struct Greeter;
//!
//! #[pinned_api("/greeters")]
//! impl Greeter {
//!     #[route::get("/")]
//!     async fn greet(&self) -> &'static str { "hello" }
//! }
//!
//! # /*
//! #[tokio::test(start_paused = true)]
//! # */
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn a_counter_is_forgotten_after_five_idle_minutes() -> pinned::Result<()> {
//!     // Every annotated struct that is linked in. `pinned_app::<Counter>()` starts a single one.
//!     let app = TestApp::start(PinnedWorker::builder().hosts_from_registry()).await?;
//!     let client = app.client();
//!
//!     let answer = client.post("/counters/alice/increment").send().await;
//!     assert_eq!(answer.json::<u64>().await, 1);
//!     assert_eq!(client.get("/greeters/alice").send().await.text().await, "hello");
//!
//!     // The clock is stopped, and moves on by itself when nothing else is left to do.
//!     tokio::time::sleep(Duration::from_secs(6 * 60)).await;
//!     assert!(app.host::<Counter>().is_empty());
//!     let answer = client.get("/counters/alice").send().await;
//!     assert_eq!(answer.json::<u64>().await, 0);
//!
//!     app.shutdown().await
//! }
//! # fn main() { a_counter_is_forgotten_after_five_idle_minutes().unwrap() }
//! ```
//!
//! ## Where to look
//!
//! | To | use |
//! |---|---|
//! | serve a type for a test | [`pinned_app`], [`pinned_app_with`] |
//! | serve several, or all that are linked in | [`TestApp::start`] |
//! | test an instance alone | [`instance`], [`TestInstance`] |
//! | make requests | [`TestClient`], [`client_for`], [`pinned_client`] |
//! | read a body as it comes | [`BodyReader`] |
//! | talk over a WebSocket | [`TestClient::websocket`], [`TestSocket`] |
//! | wake an instance | [`wake_until_ok`] |
//! | see what was logged and counted | [`capture_logs`], [`MetricsProbe`] |
//! | hold a handler at a point | [`Gate`] |
//! | stand in for the control plane | [`ScriptedPlacements`] |
//! | stand in for the state store | [`BarrierStore`] |
//! | check a state store of your own | [`conformance::state_store`] |
//! | have a PostgreSQL | [`PostgresServer`] |
//! | have a Redis, or a cluster of three | [`RedisServer`], [`RedisCluster`] |
//! | run in virtual time, from a seed | [`sim`] |
//!
//! Mistakes of a test, such as a malformed path, are panics that say what is wrong.

mod app;
mod barrier;
mod client;
pub mod conformance;
mod gate;
mod instance;
mod logs;
mod metrics;
mod placements;
mod postgres;
mod redis;
mod request;
mod response;
mod server;
pub mod sim;
mod socket;
mod valve;
mod wake;

pub use app::{PinnedClient, TestApp, pinned_app, pinned_app_with, pinned_client};
pub use barrier::BarrierStore;
pub use client::{TestClient, client_for};
pub use gate::Gate;
pub use instance::{InstanceError, TestInstance, instance, instance_with};
pub use logs::{CapturedLogs, LogEvent, capture_logs};
pub use metrics::MetricsProbe;
pub use placements::{Release, ScriptedPlacements};
pub use postgres::PostgresServer;
pub use redis::{RedisCluster, RedisOptions, RedisPersistence, RedisServer};
pub use request::TestRequest;
pub use response::{BodyError, BodyReader, TestResponse};
pub use socket::{Disconnected, SocketRequest, TestSocket};
pub use wake::{WakeError, wake_until_ok};
