//! What crosses crates.

mod browser;
mod dependency_names;
mod documents;
mod registry;
mod ui;
