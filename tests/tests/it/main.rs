//! What crosses crates.

mod dependency_names;
mod registry;
mod ui;
