//! What crosses crates.

mod browser;
mod dependency_names;
mod ui;
