//! What tests of this crate and of others need: the suite of a registry store, a scripted worker, a store that fails.

pub mod conformance;
