//! The store on PostgreSQL, for fleets (D8 to D12).
//!
//! Two tables hold everything: `pinned_epoch` with the epoch of each instance, and `pinned_tray_index` with the rows.
//! Workers of every edition share them, and the control plane reads the second one, so their shape is an interface
//! (D8.7). Every operation is one transaction, which first locks the epoch row of its instance; that lock is the fence.
//!
//! Writes of different instances that wait at the same time go out together, in one transaction that commits once.
//!
//! # Behind a connection pooler
//!
//! Nothing is kept in a session: no prepared statement, no session setting, no startup option but `application_name`
//! (D9.6). A pooler in transaction mode is fine, with one exception: [`StateStore::hold_alone`] takes a lock of a
//! session, and needs a DSN that leads to PostgreSQL itself.
//!
//! # TLS
//!
//! Connections are not encrypted. A DSN that demands it (`sslmode=require`) is refused rather than disobeyed; use a
//! private network, a Unix socket, or a TLS tunnel beside the worker.
//!
//! [`StateStore::hold_alone`]: super::StateStore::hold_alone

mod acquire;
mod attempts;
mod batcher;
mod config;
mod connection;
mod failure;
mod group;
mod hold;
mod lines;
mod ops;
mod pool;
mod rows;
mod schema;
mod store;
mod transaction;

pub use config::{PostgresConfigError, PostgresOptions, TransactionHook};
pub use store::PostgresStore;
/// The client that this store is built on: its types stand in [`PostgresStore::from_client`] and [`TransactionHook`].
pub use tokio_postgres;
