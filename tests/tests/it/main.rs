//! What crosses crates.

mod dependency_names;
mod documents;
mod registry;
mod ui;
