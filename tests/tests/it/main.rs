//! What crosses crates.

mod dependency_names;
mod ui;
