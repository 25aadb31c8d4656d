//! What is counted (P11): the names, what they mean, and the counters that operators read as well.
//!
//! Metrics go through the `metrics` facade, so that an embedding program brings its own recorder. A handle binds to the
//! recorder that is installed when it is made: install one before a node is built.

pub mod names;

mod describe;
mod resolutions;

pub use describe::describe;
pub use resolutions::{Resolution, ResolutionCounts, Resolutions};
