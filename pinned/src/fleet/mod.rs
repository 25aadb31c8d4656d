//! Calls between instances.

pub(crate) mod local;
