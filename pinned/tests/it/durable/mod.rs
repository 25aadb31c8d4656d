//! Durable replies, durable fields of hosted structs, and the store of a worker.

mod account;
mod replies;
pub(crate) mod store;
