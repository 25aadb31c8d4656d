//! Durable replies, durable fields of hosted structs, and the store of a worker.

mod account;
mod fields;
mod replies;
mod resuming;
pub(crate) mod store;
#[cfg(feature = "sqlite")]
mod worker;
