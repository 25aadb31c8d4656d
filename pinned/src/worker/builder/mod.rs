//! Putting a worker together.

mod build;
#[cfg(feature = "fleet")]
mod fleet;
mod mounts;
mod options;

pub use options::WorkerBuilder;
