//! Durable replies, durable fields of hosted structs, and the store of a worker.

pub(crate) mod store;
